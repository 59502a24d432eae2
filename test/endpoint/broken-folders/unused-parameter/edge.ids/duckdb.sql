-- Broken: the condition on the declared parameter is missing. A comment that names $project does not count.
select id, timestamp from edge_logs where event_message <> '$project'
