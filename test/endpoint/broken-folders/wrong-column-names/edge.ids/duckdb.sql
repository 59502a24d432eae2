-- Broken: the first column has another name than declared.
select id as record, timestamp from edge_logs where project = $project
