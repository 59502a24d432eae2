-- The most frequent values of a field, or pairs of values of two fields, among the records of one project that match a search
-- expression. Records without the first field are not counted.
select value, second_value, count, error_count, error_count / count as error_share, first, last
from (
  select
    value,
    second_value,
    count() as count,
    sum(is_error) as error_count,
    min(timestamp) as first,
    max(timestamp) as last
  from (
    select {{field}} as value, {{second_field}} as second_value, {{is_error}} as is_error, timestamp
    from {{logs}}
    where project = {project:String}
      and timestamp > {range_start:Int64}
      and timestamp <= ifNull({iso_timestamp_end:Nullable(Int64)}, toInt64(9223372036854775807))
      and {{search}}
  )
  where isNotNull(value)
  group by value, second_value
)
order by count desc, value, ifNull(second_value, '')
limit 101
