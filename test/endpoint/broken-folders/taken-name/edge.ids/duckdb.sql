-- Broken: a built-in endpoint has this name.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
