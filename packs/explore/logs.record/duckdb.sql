-- One record and its neighbours: the records before and after it in the order of logs.search. All records with its timestamp and
-- id have the position 0. Returns no rows if the record does not exist.
-- The first step finds the time range of the neighbours from two small columns; the next ones then read only these records.
with around as (
  select
    (select min(timestamp) from (
      select timestamp from {{logs}}
      where project = $project and timestamp > $now - to_days($retention_days) and timestamp < $timestamp
      order by timestamp desc
      limit $neighbours
    )) as oldest,
    (select max(timestamp) from (
      select timestamp from {{logs}}
      where project = $project and timestamp > $now - to_days($retention_days) and timestamp > $timestamp
      order by timestamp
      limit $neighbours
    )) as newest
),
ranked as (
  select
    id,
    timestamp,
    event_message,
    metadata,
    case
      when timestamp = $timestamp and id = $id then 0
      when timestamp < $timestamp or (timestamp = $timestamp and id > $id) then -1
      else 1
    end as side,
    row_number() over (
      partition by side
      order by
        case when side = 1 then timestamp end,
        case when side = 1 then id end desc,
        case when side = 1 then event_message end desc,
        case when side = 1 then metadata::varchar end desc,
        timestamp desc,
        id,
        event_message,
        metadata::varchar
    ) as distance
  from {{logs}}, around
  where project = $project
    and timestamp > $now - to_days($retention_days)
    and timestamp >= coalesce(oldest, $timestamp)
    and timestamp <= coalesce(newest, $timestamp)
)
select
  id,
  timestamp,
  event_message,
  metadata,
  $kind::varchar as kind,
  side * distance as position
from ranked
where ((side = 0 and distance <= 10) or (side <> 0 and distance <= $neighbours))
  and exists (from ranked where side = 0)
order by position desc, event_message, metadata::varchar
