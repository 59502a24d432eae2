-- The records of a time slice as log lines (log-line.ts). The flag j means that all texts are JSON strings. A minute with too
-- many records is split into hash buckets.
select
  concat_ws(chr(31), 'j', {{fields}}, metadata) as line
from {{table}}
where timestamp >= $start
  and timestamp < $end
  and md5_number_lower(id) % $buckets = $bucket
order by project, timestamp
