-- One page of the records of one project and log kind that match a search expression, within one slice of the time range.
-- Message and metadata order records that have the same timestamp and id, so that the next page skips exactly those that this
-- page has. In DuckDB, only their first 256 characters have a certain order.
select
  id,
  timestamp,
  event_message,
  metadata,
  {{kind}} as kind
from {{logs}}
where project = {project:String}
  and timestamp > {slice_start:Int64}
  and timestamp <= {slice_end:Int64}
  and (
    isNull({cursor_id:Nullable(String)})
    or timestamp < ifNull({cursor_timestamp:Nullable(Int64)}, 0)
    or id >= ifNull({cursor_id:Nullable(String)}, '')
  )
  and {{search}}
order by timestamp desc, id, leftUTF8(event_message, 256), leftUTF8(metadata, 256), event_message, metadata, kind
limit {cursor_skip:UInt64}, 101
