-- Broken: a built-in endpoint has this id.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
