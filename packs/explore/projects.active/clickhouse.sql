-- The projects that have records of any log kind in a time range, with the number of records and the time of the newest one.
select project, count() as count, max(timestamp) as newest
from {{logs}}
where timestamp > ifNull({iso_timestamp_start:Nullable(Int64)}, toInt64(-9223372036854775807))
  and timestamp <= ifNull({iso_timestamp_end:Nullable(Int64)}, toInt64(9223372036854775807))
  and startsWith(project, ifNull({prefix:Nullable(String)}, ''))
  and (empty({pinned_projects:Array(String)}) or has({pinned_projects:Array(String)}, project))
group by project
order by count desc, project
limit 101
