-- This file is valid; endpoint.yaml of this folder is broken.
select id, timestamp
from edge_logs
where project = $project and timestamp > $range_start and timestamp <= $range_end
order by timestamp
