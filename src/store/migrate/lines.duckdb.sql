-- The records from one moment up to another, as lines; of a minute that has too many, one part of several.
select
  to_json({
    'id': id, 'timestamp': epoch_us(timestamp), 'project': project, 'event_message': event_message{{lifted}}
  })::varchar || chr(31) || metadata::varchar as line
from {{table}}
where timestamp >= $start
  and timestamp < $end
  and md5_number_lower(id) % $parts = $part
order by project, timestamp
