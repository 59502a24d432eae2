-- Broken: there is no endpoint.yaml beside this.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
