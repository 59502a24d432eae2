-- The most frequent values of a field, or pairs of values of two fields, among the records of one project that match a search
-- expression. Records without the first field are not counted.
with field_values as (
  select {{field}} as value, {{second_field}} as second_value, {{is_error}} as is_error, timestamp
  from {{logs}}
  where project = $project
    and timestamp > $now - to_days($retention_days)
    and timestamp > $range_start
    and ($iso_timestamp_end is null or timestamp <= $iso_timestamp_end)
    and {{search}}
)
select
  value,
  second_value,
  count(*) as count,
  count(*) filter (is_error) as error_count,
  error_count / count as error_share,
  min(timestamp) as first,
  max(timestamp) as last
from field_values
where value is not null
group by value, second_value
order by count desc, value, second_value nulls first
limit 101
