-- Not broken: the explain SQL is.
select id, timestamp from edge_logs where (len($pinned_projects) = 0 or list_contains($pinned_projects, project))
