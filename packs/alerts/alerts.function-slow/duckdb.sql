-- Functions whose p95 of the execution time is much longer than at the same time of the day before.
with times as (
  select project, function_id, execution_time_ms, timestamp > $now - to_seconds($window_seconds) as is_now
  from function_edge_logs
  where timestamp > $now - to_seconds($read_seconds)
    and timestamp <= $now
    and (
      timestamp > $now - to_seconds($window_seconds)
      or timestamp <= $now - to_seconds($read_seconds) + to_seconds($window_seconds)
    )
    and execution_time_ms is not null
)
select
  project,
  function_id,
  count(*) filter (is_now) as invocations,
  quantile_disc(execution_time_ms, 0.95) filter (is_now) as p95_ms,
  quantile_disc(execution_time_ms, 0.95) filter (not is_now) as p95_before_ms
from times
group by project, function_id
having invocations >= $min_invocations
  and count(*) filter (not is_now) >= $min_invocations
  and p95_ms >= $min_ms
  and p95_ms * 100 >= p95_before_ms * $percent
order by project, function_id
