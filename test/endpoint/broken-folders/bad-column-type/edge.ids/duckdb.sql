-- Broken: no such type of column.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
