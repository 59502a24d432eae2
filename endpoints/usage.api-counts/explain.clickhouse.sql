-- How many edge log records remain after each condition of usage.api-counts. Without a pin there is no condition on the project:
-- `project` is null, and `newest` and `oldest` are of all projects.
-- The second subquery matches the pattern only against the records in the window. clickhouse.sql has the reasons for the flags
-- (?-is) and for the lengths of a URL.
select
  {now:Int64} - {window_seconds:Int64} * 1000000 as window_start,
  {now:Int64} as window_end,
  newest,
  oldest,
  after_project as project,
  after_window as window,
  after_pattern as pattern
from (
  select
    maxOrNull(timestamp) as newest,
    minOrNull(timestamp) as oldest,
    if({pinned_project:Nullable(String)} is null, null, count()) as after_project
  from edge_logs
  where {pinned_project:Nullable(String)} is null or project = ifNull({pinned_project:Nullable(String)}, '')
) as all_records, (
  select
    count() as after_window,
    countIf(
      match(
        multiIf(
          length(url) <= 2048, url,
          isValidUTF8(substring(url, 1, 2048)), substring(url, 1, 2048),
          isValidUTF8(substring(url, 1, 2047)), substring(url, 1, 2047),
          isValidUTF8(substring(url, 1, 2046)), substring(url, 1, 2046),
          substring(url, 1, 2045)
        ),
        concat('(?-is)', {project:String})
      )
    ) as after_pattern
  from edge_logs
  where timestamp >= {now:Int64} - {window_seconds:Int64} * 1000000
    and timestamp <= {now:Int64}
    and ({pinned_project:Nullable(String)} is null or project = ifNull({pinned_project:Nullable(String)}, ''))
) as records_in_window
