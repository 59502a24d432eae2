-- Broken: every query is given $now.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
