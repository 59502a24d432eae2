-- Broken: endpoint.yaml does not list the conditions.
select null::timestamp as window_start, null::timestamp as window_end, max(timestamp) as newest, min(timestamp) as oldest, count(*) as project from edge_logs where project = $project
