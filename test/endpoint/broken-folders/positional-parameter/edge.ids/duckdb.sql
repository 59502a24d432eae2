-- Broken: parameters have names.
select id, timestamp from edge_logs where project = ?
