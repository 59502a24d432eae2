-- Broken: the parameter is positional, not named.
select id, timestamp from edge_logs where project = ?
