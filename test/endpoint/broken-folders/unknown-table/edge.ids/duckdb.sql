-- Broken: the table does not exist.
select id, timestamp from requests where project = $project
