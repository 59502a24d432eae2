-- Broken: names are lower-case.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
