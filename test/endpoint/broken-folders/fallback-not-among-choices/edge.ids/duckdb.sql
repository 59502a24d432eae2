-- Broken: storage is no choice.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
