-- Broken: the list is never closed.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
