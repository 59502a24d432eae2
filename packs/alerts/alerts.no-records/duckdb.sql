-- Log kinds that had records in the window, and have no new ones.
select kind, max(timestamp) as newest
from {{logs}}
where timestamp > $now - to_seconds($window_seconds) and timestamp <= $now
group by kind
having newest <= $now - to_minutes($minutes)
order by kind
