-- Broken: no endpoint answers more than 1000 rows.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
