-- The most frequent values of a field among the records of one project that match a search expression. Records without the field
-- are not counted.
select value, count() as count
from (
  select {{field}} as value
  from {{logs}}
  where project = {project:String}
    and timestamp > {range_start:Int64}
    and timestamp <= ifNull({iso_timestamp_end:Nullable(Int64)}, toInt64(9223372036854775807))
    and {{search}}
)
where isNotNull(value)
group by value
order by count desc, value
limit 51
