-- The records of a time slice as log lines (log-line.ts). The flag j means that all texts are JSON strings. A slice is one or
-- more minutes. If one minute is too large for a slice, each slice is one hash bucket of it (migration.ts).
select
  concat_ws(chr(31), 'j', {{fields}}, metadata) as line
from {{table}}
where timestamp >= $start
  and timestamp < $end
  and md5_number_lower(id) % $buckets = $bucket
order by project, timestamp
