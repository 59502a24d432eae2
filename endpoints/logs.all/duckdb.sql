-- Which are the newest edge log records of one project, within the asked range and the retention of its tier?
select
  id,
  timestamp,
  event_message,
  metadata
from edge_logs
where project = $project
  and timestamp > $now - to_days($retention_days)
  and ($iso_timestamp_start is null or timestamp > $iso_timestamp_start)
  and ($iso_timestamp_end is null or timestamp <= $iso_timestamp_end)
order by timestamp desc, id
limit 100
