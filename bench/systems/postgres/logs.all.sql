-- The newest edge log records of one project.
select id, (extract(epoch from timestamp) * 1000000)::bigint, event_message, body -> 'metadata'
from edge_logs
where body ->> 'project' = {project}
  and timestamp > {now} - {retention_days} * interval '1 day'
  and ({iso_timestamp_start} is null or timestamp > {iso_timestamp_start})
  and ({iso_timestamp_end} is null or timestamp <= {iso_timestamp_end})
order by timestamp desc, id
limit 100
