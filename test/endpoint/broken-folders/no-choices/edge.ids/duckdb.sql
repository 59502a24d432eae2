-- Broken: nothing to choose from.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
