-- Broken: two statements, the second of which writes.
select id, timestamp from edge_logs where project = $project;
delete from edge_logs
