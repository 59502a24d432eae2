-- How many edge log records remain after each condition of usage.api-counts. Without a pin there is no condition on the project:
-- `project` is null, and `newest` and `oldest` are of all projects.
-- The second subquery matches the pattern only against the records in the window.
-- duckdb.sql has the reason for the lengths of a URL.
select
  $now - to_seconds($window_seconds) as window_start,
  $now as window_end,
  newest,
  oldest,
  project,
  "window",
  pattern
from (
  select
    max(timestamp) as newest,
    min(timestamp) as oldest,
    case when $pinned_project is not null then count(*) end as project
  from edge_logs
  where $pinned_project is null or project = $pinned_project
), (
  select
    count(*) as "window",
    count(*) filter (
      regexp_matches(
        case when strlen(url) <= 2048 then url else coalesce(
          try(decode(encode(url)[:2048])),
          try(decode(encode(url)[:2047])),
          try(decode(encode(url)[:2046])),
          decode(encode(url)[:2045])
        ) end,
        $project
      )
    ) as pattern
  from edge_logs
  where timestamp between $now - to_seconds($window_seconds) and $now
    and ($pinned_project is null or project = $pinned_project)
)
