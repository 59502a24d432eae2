-- Which are the newest edge log records of one project, within the asked range and the retention of its tier?
-- First how far back the newest hundred reach, which takes two narrow columns; then messages and metadata of those alone.
with newest as (
  select timestamp
  from edge_logs
  where project = $project
    and timestamp > $now - to_days($retention_days)
    and ($iso_timestamp_start is null or timestamp > $iso_timestamp_start)
    and ($iso_timestamp_end is null or timestamp <= $iso_timestamp_end)
  order by timestamp desc
  limit 100
)
select
  id,
  timestamp,
  event_message,
  metadata
from edge_logs, (select min(timestamp) as oldest from newest)
where project = $project
  and timestamp > $now - to_days($retention_days)
  and timestamp >= oldest
  and ($iso_timestamp_end is null or timestamp <= $iso_timestamp_end)
order by timestamp desc, id
limit 100
