-- Broken: constructor is no choice, though every object of JavaScript has one.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
