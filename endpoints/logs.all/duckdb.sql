-- The newest 100 edge log records of one project within the requested time range and the retention of its tier.
-- The first step finds the oldest timestamp among them from two small columns (project and timestamp). The second step then reads
-- messages and metadata of these records only. It has no condition on iso_timestamp_start, because `oldest` is after that time.
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
