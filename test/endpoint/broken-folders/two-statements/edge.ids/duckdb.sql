-- Broken: two statements.
select id, timestamp from edge_logs where project = $project;
select id, timestamp from edge_logs
