-- Broken: timestamp is a text.
select id, timestamp::varchar as timestamp from edge_logs where project = $project
