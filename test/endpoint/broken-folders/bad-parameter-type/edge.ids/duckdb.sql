-- Broken: no such type of parameter.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
