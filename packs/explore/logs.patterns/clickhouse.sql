-- The messages of the records of one project that match a search expression, grouped by {{message_pattern}}, with the period of the
-- same length before the range.
select
  pattern,
  count,
  count / total as share,
  error_count,
  count_before,
  if(total_before = 0, null, count_before / total_before) as share_before,
  first,
  last,
  sample
from (
  select
    1 as one,
    pattern,
    sum(is_now) as count,
    sum(is_now and is_error) as error_count,
    sum(not is_now) as count_before,
    minIf(timestamp, is_now) as first,
    maxIf(timestamp, is_now) as last,
    minIf(message, is_now) as sample
  from (
    select
      {{message_pattern}} as pattern,
      {{message_sample}} as message,
      timestamp,
      timestamp > {range_start:Int64} as is_now,
      {{is_error}} as is_error
    from {{logs}}
    where project = {project:String}
      and timestamp > {before_start:Int64}
      and timestamp <= {range_end:Int64}
      and {{search}}
  )
  group by pattern
) as patterns
all inner join (
  select 1 as one, sum(timestamp > {range_start:Int64}) as total, sum(timestamp <= {range_start:Int64}) as total_before
  from {{logs}}
  where project = {project:String}
    and timestamp > {before_start:Int64}
    and timestamp <= {range_end:Int64}
    and {{search}}
) as totals using (one)
where count > 0
order by count desc, pattern
limit 101
