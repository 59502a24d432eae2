-- Not broken.
select null::timestamp as window_start, null::timestamp as window_end, max(timestamp) as newest, min(timestamp) as oldest from edge_logs where project = $project
