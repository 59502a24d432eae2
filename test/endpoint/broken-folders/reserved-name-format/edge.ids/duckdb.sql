-- Broken: format is the format of the answer.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
