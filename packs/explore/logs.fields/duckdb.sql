-- The most frequent values of a field among the records of one project that match a search expression. Records without the field
-- are not counted.
with field_values as (
  select {{field}} as value
  from {{logs}}
  where project = $project
    and timestamp > $now - to_days($retention_days)
    and timestamp > $range_start
    and ($iso_timestamp_end is null or timestamp <= $iso_timestamp_end)
    and {{search}}
)
select value, count(*) as count
from field_values
where value is not null
group by value
order by count desc, value
limit 51
