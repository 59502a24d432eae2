-- Broken: there is no parameter project, so no project of the request that is pinned.
select id, timestamp from edge_logs
where ($pinned_project is null or project = $pinned_project)
