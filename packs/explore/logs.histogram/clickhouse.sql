-- The number of records of one project and log kind that match a search expression, by time bucket and category. A bucket without
-- records has no row.
-- The aggregation is a subquery because in ClickHouse an alias with the name of a column replaces the column in WHERE.
select
  bucket as timestamp,
  {bucket_micros:Int64} / 1000000 as bucket_seconds,
  category,
  count
from (
  select
    intDiv(timestamp, {bucket_micros:Int64}) * {bucket_micros:Int64} as bucket,
    {{category}} as category,
    count() as count
  from {{logs}}
  where project = {project:String}
    and timestamp > {range_start:Int64}
    and timestamp <= {range_end:Int64}
    and {{search}}
  group by bucket, category
)
order by timestamp, category
