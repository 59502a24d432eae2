select id, timestamp from {{logs}} where project = $project
