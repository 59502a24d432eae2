-- One page of the records of one project and log kind that match a search expression, within one slice of the time range.
-- Message and metadata order records that have the same timestamp and id, so that the next page skips exactly those that this
-- page has.
select
  id,
  timestamp,
  event_message,
  metadata,
  {kind:String} as kind
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
order by timestamp desc, id, event_message, metadata
limit {cursor_skip:UInt64}, 101
