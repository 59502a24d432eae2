-- Broken: no such setting.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
