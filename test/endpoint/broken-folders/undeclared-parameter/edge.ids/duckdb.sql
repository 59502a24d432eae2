-- Broken: $owner is not declared.
select id, timestamp from edge_logs where project = $project and event_message = $owner
