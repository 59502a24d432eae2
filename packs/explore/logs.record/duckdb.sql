-- One record and its neighbours: the records before and after it in the order of logs.search. All records with its timestamp and
-- id have the position 0. Returns no rows if the record does not exist.
-- The first step finds the neighbours from three small columns; the next one then reads only these records.
with keys as (
  (
    select timestamp, id from {{logs}}
    where project = $project
      and timestamp > $now - to_days($retention_days)
      and timestamp <= $timestamp
      and (timestamp < $timestamp or id > $id)
    order by timestamp desc, id
    limit $neighbours
  )
  union all
  (
    select timestamp, id from {{logs}}
    where project = $project
      and timestamp > $now - to_days($retention_days)
      and timestamp >= $timestamp
      and (timestamp > $timestamp or id < $id)
    order by timestamp, id desc
    limit $neighbours
  )
  union all
  select $timestamp, $id
),
ranked as (
  select
    id,
    timestamp,
    event_message,
    metadata,
    {{kind}} as kind,
    case
      when timestamp = $timestamp and id = $id then 0
      when timestamp < $timestamp or (timestamp = $timestamp and id > $id) then -1
      else 1
    end as side,
    row(left(event_message, 256), left(metadata::varchar, 256), hash(event_message), hash(metadata::varchar), kind) as content,
    row_number() over (
      partition by side
      order by
        case when side = 1 then timestamp end,
        case when side = 1 then id end desc,
        case when side = 1 then content end desc,
        timestamp desc,
        id,
        content
    ) as distance
  from {{logs}}, (select min(timestamp) as oldest, max(timestamp) as newest from keys)
  where project = $project
    and timestamp > $now - to_days($retention_days)
    and timestamp between oldest and newest
    and (timestamp, id) in (select timestamp, id from keys)
)
select
  id,
  timestamp,
  event_message,
  metadata,
  kind,
  side * distance as position
from ranked
where ((side = 0 and distance <= 10) or (side <> 0 and distance <= $neighbours))
  and exists (from ranked where side = 0)
order by position desc, distance
