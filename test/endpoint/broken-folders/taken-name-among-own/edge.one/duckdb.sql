-- Broken: the folder beside this has the same name.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
