-- Broken: no such name can be bound.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
