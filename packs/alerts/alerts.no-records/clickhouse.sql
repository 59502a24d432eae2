-- Log kinds that had records in the window, and have no new ones.
select kind, max(timestamp) as newest
from {{logs}}
where timestamp > {now:Int64} - {window_seconds:Int64} * 1000000 and timestamp <= {now:Int64}
group by kind
having newest <= {now:Int64} - {minutes:Int64} * 60000000
order by kind
