-- How many edge log records of one project remain after each condition of logs.all. `range` is null if the request has no range.
-- The counts are in a subquery because in ClickHouse an alias with the name of a column replaces the column in WHERE.
select
  window_start,
  window_end,
  newest,
  oldest,
  after_project as project,
  after_retention as retention,
  after_range as range
from (
  select
    greatest(
      {now:Int64} - {retention_days:Int64} * 86400000000,
      ifNull({iso_timestamp_start:Nullable(Int64)}, toInt64(-9223372036854775807))
    ) as window_start,
    {iso_timestamp_end:Nullable(Int64)} as window_end,
    maxOrNull(timestamp) as newest,
    minOrNull(timestamp) as oldest,
    count() as after_project,
    countIf(timestamp > {now:Int64} - {retention_days:Int64} * 86400000000) as after_retention,
    if(
      {iso_timestamp_start:Nullable(Int64)} is null and {iso_timestamp_end:Nullable(Int64)} is null,
      null,
      countIf(
        timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
        and timestamp > ifNull({iso_timestamp_start:Nullable(Int64)}, toInt64(-9223372036854775807))
        and timestamp <= ifNull({iso_timestamp_end:Nullable(Int64)}, toInt64(9223372036854775807))
      )
    ) as after_range
  from edge_logs
  where project = {project:String}
)
