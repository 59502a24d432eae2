-- How many edge log records of one project remain after each condition of logs.all. `range` is null if the request has no range.
select
  greatest($now - to_days($retention_days), $iso_timestamp_start) as window_start,
  $iso_timestamp_end::timestamp as window_end,
  max(timestamp) as newest,
  min(timestamp) as oldest,
  count(*) as project,
  count(*) filter (timestamp > $now - to_days($retention_days)) as retention,
  case when $iso_timestamp_start is not null or $iso_timestamp_end is not null then
    count(*) filter (
      timestamp > $now - to_days($retention_days)
      and ($iso_timestamp_start is null or timestamp > $iso_timestamp_start)
      and ($iso_timestamp_end is null or timestamp <= $iso_timestamp_end)
    )
  end as range
from edge_logs
where project = $project
