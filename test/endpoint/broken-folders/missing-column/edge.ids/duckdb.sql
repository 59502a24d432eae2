-- Broken: there is one column less than declared.
select id from edge_logs where project = $project
