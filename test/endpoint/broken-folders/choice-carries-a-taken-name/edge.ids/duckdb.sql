-- Broken: project would be bound twice.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
