-- The records from one moment up to another, as lines whose texts are written as JSON (log-line.ts); of a minute that has too
-- many, one part of several.
select
  concat_ws(chr(31), 'j', {{fields}}, metadata) as line
from {{table}}
where timestamp >= $start
  and timestamp < $end
  and md5_number_lower(id) % $parts = $part
order by project, timestamp
