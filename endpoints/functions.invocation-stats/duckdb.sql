-- Execution statistics of one project's functions per time bucket, from the bucket of the window's start to the bucket of now.
-- A bucket without invocations returns no row. quantile_disc is exact, and faster than the approximate functions.
select
  time_bucket(to_seconds($bucket_seconds), timestamp) as timestamp,
  min(execution_time_ms) as min_execution_time,
  max(execution_time_ms) as max_execution_time,
  avg(execution_time_ms) as avg_execution_time,
  quantile_disc(execution_time_ms, 0.95) as p95_execution_time,
  quantile_disc(execution_time_ms, 0.99) as p99_execution_time,
  count(*) as count,
  count(*) filter (status_code >= 400) as error_count
from function_edge_logs
where project = $project
  and ($function_id is null or function_id = $function_id)
  and timestamp >= time_bucket(to_seconds($bucket_seconds), $now - to_seconds($window_seconds))
  and timestamp < time_bucket(to_seconds($bucket_seconds), $now) + to_seconds($bucket_seconds)
group by 1
order by 1
