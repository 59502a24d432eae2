-- Broken: nothing says how the answers are cached.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
