-- One record and its neighbours: the records before and after it in the order of logs.search. All records with its timestamp and
-- id have the position 0. Returns no rows if the record does not exist.
select id, timestamp, event_message, metadata, kind, side * distance as position
from (
  select
    id,
    timestamp,
    event_message,
    metadata,
    {{kind}} as kind,
    toInt64(0) as side,
    toInt64(0) as distance
  from {{logs}}
  where project = {project:String}
    and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
    and timestamp = {timestamp:Int64}
    and id = {id:String}
  order by leftUTF8(event_message, 256), leftUTF8(metadata, 256), event_message, metadata, kind
  limit 10
  union all
  select id, timestamp, event_message, metadata, kind, toInt64(-1) as side, toInt64(rowNumberInAllBlocks()) + 1 as distance
  from (
    select id, timestamp, event_message, metadata, {{kind}} as kind
    from {{logs}}
    where project = {project:String}
      and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
      and timestamp <= {timestamp:Int64}
      and (timestamp < {timestamp:Int64} or id > {id:String})
    order by timestamp desc, id, leftUTF8(event_message, 256), leftUTF8(metadata, 256), event_message, metadata, kind
    limit {neighbours:UInt64}
  )
  union all
  select id, timestamp, event_message, metadata, kind, toInt64(1) as side, toInt64(rowNumberInAllBlocks()) + 1 as distance
  from (
    select id, timestamp, event_message, metadata, {{kind}} as kind
    from {{logs}}
    where project = {project:String}
      and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
      and timestamp >= {timestamp:Int64}
      and (timestamp > {timestamp:Int64} or id < {id:String})
    order by
      timestamp,
      id desc,
      leftUTF8(event_message, 256) desc,
      leftUTF8(metadata, 256) desc,
      event_message desc,
      metadata desc,
      kind desc
    limit {neighbours:UInt64}
  )
)
where (
  select count()
  from {{logs}}
  where project = {project:String}
    and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
    and timestamp = {timestamp:Int64}
    and id = {id:String}
) > 0
order by position desc, leftUTF8(event_message, 256), leftUTF8(metadata, 256), event_message, metadata, kind
