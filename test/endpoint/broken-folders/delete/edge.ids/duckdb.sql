-- Broken: writes.
delete from edge_logs where project = $project returning id, timestamp
