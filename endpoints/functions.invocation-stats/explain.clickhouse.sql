-- How many records of one project's functions remain after each condition of functions.invocation-stats. `function` is null if the
-- request is for all functions.
-- The counts are in a subquery because in ClickHouse an alias with the name of a column replaces the column in WHERE.
with
  intDiv({now:Int64} - {window_seconds:Int64} * 1000000, {bucket_seconds:Int64} * 1000000)
    * ({bucket_seconds:Int64} * 1000000) as window_start,
  (intDiv({now:Int64}, {bucket_seconds:Int64} * 1000000) + 1) * ({bucket_seconds:Int64} * 1000000) as window_end
select
  window_start,
  window_end,
  newest,
  oldest,
  after_project as project,
  after_window as window,
  after_function as function
from (
  select
    maxOrNull(timestamp) as newest,
    minOrNull(timestamp) as oldest,
    count() as after_project,
    countIf(timestamp >= window_start and timestamp < window_end) as after_window,
    if(
      {function_id:Nullable(String)} is null,
      null,
      countIf(
        timestamp >= window_start and timestamp < window_end and function_id = ifNull({function_id:Nullable(String)}, '')
      )
    ) as after_function
  from function_edge_logs
  where project = {project:String}
)
