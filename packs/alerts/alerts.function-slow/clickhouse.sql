-- Functions whose p95 of the execution time is much longer than at the same time of the day before.
-- quantileExact with a level just below the percentile is the exact discrete percentile.
select project, function_id, invocations, p95_ms, p95_before_ms
from (
  select
    project,
    function_id,
    countIf(is_now) as invocations,
    countIf(not is_now) as invocations_before,
    quantileExactIf(0.9499999999)(time_ms, is_now) as p95_ms,
    quantileExactIf(0.9499999999)(time_ms, not is_now) as p95_before_ms
  from (
    select
      project,
      function_id,
      assumeNotNull(execution_time_ms) as time_ms,
      timestamp > {now:Int64} - {window_seconds:Int64} * 1000000 as is_now
    from function_edge_logs
    where timestamp > {now:Int64} - {read_seconds:Int64} * 1000000
      and timestamp <= {now:Int64}
      and (
        timestamp > {now:Int64} - {window_seconds:Int64} * 1000000
        or timestamp <= {now:Int64} - ({read_seconds:Int64} - {window_seconds:Int64}) * 1000000
      )
      and execution_time_ms is not null
  )
  group by project, function_id
)
where invocations >= {min_invocations:Int64}
  and invocations_before >= {min_invocations:Int64}
  and p95_ms >= {min_ms:Int64}
  and p95_ms * 100 >= p95_before_ms * {percent:Int64}
order by project, function_id
