-- Broken: no SELECT.
delete from edge_logs where project = $project
