-- Broken: neither none nor a lifetime with a warming.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
