-- The number of records of one project and log kind that match a search expression, by time bucket and category. A bucket without
-- records has no row.
select
  make_timestamp(epoch_us(timestamp) // $bucket_micros * $bucket_micros) as timestamp,
  $bucket_micros / 1000000 as bucket_seconds,
  {{category}} as category,
  count(*) as count
from {{logs}}
where project = $project
  and timestamp > $now - to_days($retention_days)
  and timestamp > $range_start
  and timestamp <= $range_end
  and {{search}}
group by all
order by timestamp, category
