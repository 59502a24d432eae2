-- Broken: there is one column more than declared.
select id, timestamp, project from edge_logs where project = $project
