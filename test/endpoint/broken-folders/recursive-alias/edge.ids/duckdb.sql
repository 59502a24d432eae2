-- This file is valid; endpoint.yaml of this folder is broken.
select id, timestamp
from edge_logs
where project = $project
order by timestamp
