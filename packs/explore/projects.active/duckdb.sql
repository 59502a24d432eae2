-- The projects that have records of any log kind in a time range, with the number of records and the time of the newest one.
with records as (
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
select project, count(*) as count, max(timestamp) as newest
from records
where ($iso_timestamp_start is null or timestamp > $iso_timestamp_start)
  and ($iso_timestamp_end is null or timestamp <= $iso_timestamp_end)
  and ($prefix is null or starts_with(project, $prefix))
  and (len($pinned_projects) = 0 or list_contains($pinned_projects, project))
group by project
order by count desc, project
limit 100
