-- Broken: the first column is called otherwise.
select id as record, timestamp from edge_logs where project = $project
