-- How many records of one project's functions remain after each condition of functions.invocation-stats. `function` is null if the
-- request is for all functions.
select
  time_bucket(to_seconds($bucket_seconds), $now - to_seconds($window_seconds)) as window_start,
  time_bucket(to_seconds($bucket_seconds), $now) + to_seconds($bucket_seconds) as window_end,
  max(timestamp) as newest,
  min(timestamp) as oldest,
  count(*) as project,
  count(*) filter (is_in_window) as window,
  case when $function_id is not null then
    count(*) filter (is_in_window and function_id = $function_id)
  end as function
from (
  select
    timestamp,
    function_id,
    timestamp >= time_bucket(to_seconds($bucket_seconds), $now - to_seconds($window_seconds))
      and timestamp < time_bucket(to_seconds($bucket_seconds), $now) + to_seconds($bucket_seconds) as is_in_window
  from function_edge_logs
  where project = $project
)
