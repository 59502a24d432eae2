-- Broken: the id is no UUID.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
