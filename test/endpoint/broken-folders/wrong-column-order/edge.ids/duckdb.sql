-- Broken: the columns are in another order than declared.
select timestamp, id from edge_logs where project = $project
