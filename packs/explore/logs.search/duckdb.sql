-- One page of the records of one project and log kind that match a search expression, within one slice of the time range.
-- The first step finds the oldest timestamp of the page from the columns that the conditions need; the second step then reads
-- messages and metadata of these records only: none if the page is empty. Message and metadata order records that have the same
-- timestamp and id, so that the next page skips exactly those that this page has. Large ones are not compared as a whole: a sort
-- would keep copies of all of them in memory.
with page as (
  select timestamp
  from {{logs}}
  where project = $project
    and timestamp > $now - to_days($retention_days)
    and timestamp > $slice_start
    and timestamp <= $slice_end
    and ($cursor_id is null or timestamp < $cursor_timestamp or id >= $cursor_id)
    and {{search}}
  order by timestamp desc
  limit 101 + $cursor_skip
)
select
  id,
  timestamp,
  event_message,
  metadata,
  {{kind}} as kind
from {{logs}}, (select coalesce(min(timestamp), 'infinity'::timestamp) as oldest from page)
where project = $project
  and timestamp >= oldest
  and timestamp <= $slice_end
  and ($cursor_id is null or timestamp < $cursor_timestamp or id >= $cursor_id)
  and {{search}}
order by
  timestamp desc,
  id,
  left(event_message, 256),
  left(metadata::varchar, 256),
  hash(event_message),
  hash(metadata::varchar),
  kind
limit 101
offset $cursor_skip
