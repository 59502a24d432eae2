-- Execution statistics of one project's functions per time bucket, from the bucket of the window's start to the bucket of now.
-- A bucket without invocations returns no row.
-- quantileExact returns the value at index floor(level * count) of the sorted values. With a level just below the percentile,
-- this is the exact discrete percentile, for up to 10^8 records per bucket.
-- The aggregation is a subquery because in ClickHouse an alias with the name of a column replaces the column in WHERE.
select
  bucket as timestamp,
  min_execution_time,
  max_execution_time,
  avg_execution_time,
  p95_execution_time,
  p99_execution_time,
  count,
  error_count
from (
  select
    intDiv(timestamp, {bucket_seconds:Int64} * 1000000) * ({bucket_seconds:Int64} * 1000000) as bucket,
    min(execution_time_ms) as min_execution_time,
    max(execution_time_ms) as max_execution_time,
    avg(execution_time_ms) as avg_execution_time,
    quantileExact(0.9499999999)(execution_time_ms) as p95_execution_time,
    quantileExact(0.9899999999)(execution_time_ms) as p99_execution_time,
    count() as count,
    countIf(ifNull(status_code, 0) >= 400) as error_count
  from function_edge_logs
  where project = {project:String}
    and ({function_id:Nullable(String)} is null or function_id = ifNull({function_id:Nullable(String)}, ''))
    and timestamp >= intDiv({now:Int64} - {window_seconds:Int64} * 1000000, {bucket_seconds:Int64} * 1000000)
      * ({bucket_seconds:Int64} * 1000000)
    and timestamp < (intDiv({now:Int64}, {bucket_seconds:Int64} * 1000000) + 1) * ({bucket_seconds:Int64} * 1000000)
  group by bucket
)
order by timestamp
