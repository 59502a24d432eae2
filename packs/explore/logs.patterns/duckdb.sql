-- The messages of the records of one project that match a search expression, grouped by {{message_pattern}}, with the period of the
-- same length before the range.
with messages as (
  select
    {{message_pattern}} as pattern,
    {{message_sample}} as sample,
    timestamp,
    timestamp > $range_start as is_now,
    {{is_error}} as is_error
  from {{logs}}
  where project = $project
    and timestamp > $now - to_days($retention_days)
    and timestamp > $before_start
    and timestamp <= $range_end
    and {{search}}
),
patterns as (
  select
    pattern,
    count(*) filter (is_now) as count,
    count(*) filter (is_now and is_error) as error_count,
    count(*) filter (not is_now) as count_before,
    min(timestamp) filter (is_now) as first,
    max(timestamp) filter (is_now) as last,
    min(sample) filter (is_now) as sample
  from messages
  group by pattern
),
totals as (
  select sum(count) as total, sum(count_before) as total_before from patterns
)
select
  pattern,
  count,
  count / total as share,
  error_count,
  count_before,
  count_before / nullif(total_before, 0) as share_before,
  first,
  last,
  sample
from patterns, totals
where count > 0
order by count desc, pattern
limit 101
