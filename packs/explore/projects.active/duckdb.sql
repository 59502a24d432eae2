-- The projects that have records of any log kind in a time range, with the number of records and the time of the newest one.
select project, count(*) as count, max(timestamp) as newest
from {{logs}}
where ($iso_timestamp_start is null or timestamp > $iso_timestamp_start)
  and ($iso_timestamp_end is null or timestamp <= $iso_timestamp_end)
  and ($prefix is null or starts_with(project, $prefix))
  and (len($pinned_projects) = 0 or list_contains($pinned_projects, project))
group by project
order by count desc, project
limit 101
