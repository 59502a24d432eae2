-- A sample of the records that match a search expression and of others: the records of the same time range that do not match or, with
-- $baseline_start, those of a second range that match. The hash of the id chooses the sample, so both stores choose the same records.
-- The order interleaves both, so that a limit of bytes cuts both.
with sides as not materialized (
  select
    id,
    timestamp,
    md5_number_upper(id)::double / 18446744073709551616 as hash,
    case
      when timestamp > $range_start and timestamp <= $range_end then
        case when {{search}} then 1 when $baseline_start is null then 0 end
      when timestamp > $baseline_start and timestamp <= coalesce($baseline_end, $range_start) and {{search}} then 0
    end as matches,
    {{kind}} as kind,
    {{status}} as status,
    {{method}} as method,
    {{path}} as path,
    {{host}} as host,
    {{function}} as function,
    {{level}} as level,
    metadata
  from {{logs}}
  where project = $project
    and timestamp > $now - to_days($retention_days)
    and timestamp > least($range_start, coalesce($baseline_start, $range_start))
    and timestamp <= greatest($range_end, coalesce($baseline_end, $range_end))
),
totals as (
  select matches, count(*) as total from sides where matches is not null group by matches
)
select
  matches,
  total,
  kind,
  status,
  method,
  path,
  host,
  function,
  level,
  case when strlen(metadata) <= 16384 then metadata end as metadata
from sides join totals using (matches)
where hash * total <= 2000
order by hash * total, id, timestamp, kind
limit 4000
