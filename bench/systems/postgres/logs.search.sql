-- The newest edge log records of one project that contain every word.
select id, (extract(epoch from timestamp) * 1000000)::bigint, event_message, body -> 'metadata'
from edge_logs
where body ->> 'project' = {project}
  and timestamp > {range_start}
  and {words}
order by timestamp desc, id
limit 100
