-- The paths of one project, those with the most failed requests first.
-- try_cast returns null for a status that is not a number; a plain cast would make the whole query fail.
select path, count(*) as count
from edge_logs
where project = $project
  and timestamp > $now - to_seconds($window_seconds)
  and try_cast(metadata ->> '$.response.status_code' as integer) >= 400
group by path
order by count desc, path
