-- Nothing is wrong here: the definition beside this is broken.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
