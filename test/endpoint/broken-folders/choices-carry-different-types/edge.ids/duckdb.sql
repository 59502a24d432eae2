-- Broken: a level is a number here and a text there.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
