-- Broken: the columns stand the other way round.
select timestamp, id from edge_logs where project = $project
