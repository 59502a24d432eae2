-- The newest 100 edge log records of one project within the requested time range and the retention of its tier.
select
  id,
  timestamp,
  event_message,
  metadata
from edge_logs
where project = {project:String}
  and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
  and timestamp > ifNull({iso_timestamp_start:Nullable(Int64)}, toInt64(-9223372036854775807))
  and timestamp <= ifNull({iso_timestamp_end:Nullable(Int64)}, toInt64(9223372036854775807))
order by timestamp desc, id
limit 100
