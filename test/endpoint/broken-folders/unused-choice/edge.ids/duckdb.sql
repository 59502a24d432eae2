-- Broken: neither $period nor the value of its choices is used.
select id, timestamp from edge_logs where project = $project
