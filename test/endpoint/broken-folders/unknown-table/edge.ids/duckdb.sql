-- Broken: no such table.
select id, timestamp from requests where project = $project
