-- The projects that have records of any log kind in a time range, with the number of records and the time of the newest one.
select project, count() as count, max(timestamp) as newest
from (
  select project, timestamp from edge_logs
  union all
  select project, timestamp from postgres_logs
  union all
  select project, timestamp from function_edge_logs
  union all
  select project, timestamp from function_logs
  union all
  select project, timestamp from auth_logs
  union all
  select project, timestamp from realtime_logs
  union all
  select project, timestamp from storage_logs
  union all
  select project, timestamp from rest_logs
  union all
  select project, timestamp from pooler_logs
)
where timestamp > ifNull({iso_timestamp_start:Nullable(Int64)}, toInt64(-9223372036854775807))
  and timestamp <= ifNull({iso_timestamp_end:Nullable(Int64)}, toInt64(9223372036854775807))
  and startsWith(project, ifNull({prefix:Nullable(String)}, ''))
  and (empty({pinned_projects:Array(String)}) or has({pinned_projects:Array(String)}, project))
group by project
order by count desc, project
limit 100
