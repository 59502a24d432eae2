-- Broken: one choice has no level.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
