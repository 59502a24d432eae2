-- The paths of one project, those with the most failed requests first. Only needed with a ClickHouse store.
-- JSONExtractInt returns 0 for a status that is not a number.
select path, count() as count
from edge_logs
where project = {project:String}
  and timestamp > {now:Int64} - {window_seconds:Int64} * 1000000
  and JSONExtractInt(metadata, 'response', 'status_code') >= 400
group by path
order by count desc, path
