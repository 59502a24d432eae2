-- Not broken: the explain SQL is.
select id, timestamp from edge_logs where project = $project
