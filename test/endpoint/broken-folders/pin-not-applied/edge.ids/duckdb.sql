-- Broken: pinned tokens may call it, but only this comment has pinned_projects.
select id, timestamp from edge_logs
