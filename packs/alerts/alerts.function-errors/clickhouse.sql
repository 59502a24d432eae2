-- Functions of which a large share of the invocations fails.
select project, function_id, invocations, errors, round(100 * errors / invocations, 1) as error_percent
from (
  select project, function_id, count() as invocations, countIf(ifNull(status_code, 0) >= 500) as errors
  from function_edge_logs
  where timestamp > {now:Int64} - {window_seconds:Int64} * 1000000 and timestamp <= {now:Int64}
  group by project, function_id
)
where errors >= {min_errors:Int64} and 100 * errors / invocations >= {percent:Int64}
order by errors desc, project, function_id
