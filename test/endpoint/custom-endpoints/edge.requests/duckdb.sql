-- The requests of one project, oldest first.
select
  id,
  timestamp as at,
  date_trunc('day', timestamp) as day,
  $area as area,
  $weight as weight,
  epoch($now - timestamp) as seconds_ago,
  metadata
from edge_logs
where project = $project
  and ($area is null or starts_with(path, $prefix))
  and ($since is null or timestamp >= $since)
  and ($path_pattern is null or regexp_matches(path, $path_pattern))
order by timestamp, id
