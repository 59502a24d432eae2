-- Execution statistics of one project's functions per time bucket.
select (extract(epoch from bucket) * 1000000)::bigint,
  min(execution_time), max(execution_time), avg(execution_time),
  percentile_disc(0.95) within group (order by execution_time),
  percentile_disc(0.99) within group (order by execution_time),
  count(*), count(*) filter (where status_code >= 400)
from (
  select date_bin({bucket_seconds} * interval '1 second', timestamp, timestamp 'epoch') as bucket,
    (body #>> '{metadata,execution_time_ms}')::float8 as execution_time,
    (body #>> '{metadata,response,status_code}')::int as status_code
  from function_edge_logs
  where body ->> 'project' = {project}
    and ({function_id} is null or body #>> '{metadata,function_id}' = {function_id})
    and timestamp >= date_bin({bucket_seconds} * interval '1 second', {now} - {window_seconds} * interval '1 second', timestamp 'epoch')
    and timestamp < date_bin({bucket_seconds} * interval '1 second', {now}, timestamp 'epoch') + {bucket_seconds} * interval '1 second'
) as invocations
group by bucket
order by bucket
