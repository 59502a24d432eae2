-- One record and its neighbours: the records before and after it in the order of logs.search. All records with its timestamp and
-- id have the position 0. Returns no rows if the record does not exist.
select id, timestamp, event_message, metadata, {kind:String} as kind, side * distance as position
from (
  select
    id,
    timestamp,
    event_message,
    metadata,
    toInt64(0) as side,
    toInt64(0) as distance
  from {{logs}}
  where project = {project:String}
    and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
    and timestamp = {timestamp:Int64}
    and id = {id:String}
  order by event_message, metadata
  limit 10
  union all
  select id, timestamp, event_message, metadata, toInt64(-1) as side, toInt64(rowNumberInAllBlocks()) + 1 as distance
  from (
    select id, timestamp, event_message, metadata
    from {{logs}}
    where project = {project:String}
      and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
      and timestamp <= {timestamp:Int64}
      and (timestamp < {timestamp:Int64} or id > {id:String})
    order by timestamp desc, id, event_message, metadata
    limit {neighbours:UInt64}
  )
  union all
  select id, timestamp, event_message, metadata, toInt64(1) as side, toInt64(rowNumberInAllBlocks()) + 1 as distance
  from (
    select id, timestamp, event_message, metadata
    from {{logs}}
    where project = {project:String}
      and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
      and timestamp >= {timestamp:Int64}
      and (timestamp > {timestamp:Int64} or id < {id:String})
    order by timestamp, id desc, event_message desc, metadata desc
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
order by position desc, event_message, metadata
