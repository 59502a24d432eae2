-- A sample of the records that match a search expression and of others: the records of the same time range that do not match or, with
-- baseline_start, those of a second range that match. The hash of the id chooses the sample, so both stores choose the same records.
-- The order interleaves both, so that a limit of bytes cuts both. In ClickHouse, an alias `metadata` would also change the search.
select matches, total, kind, status, method, path, host, function, level, small_metadata as metadata
from (
  select
    multiIf(
      timestamp > {range_start:Int64} and timestamp <= {range_end:Int64},
      multiIf({{search}}, 1, isNull({baseline_start:Nullable(Int64)}), 0, -1),
      timestamp > ifNull({baseline_start:Nullable(Int64)}, toInt64(9223372036854775807))
        and timestamp <= ifNull({baseline_end:Nullable(Int64)}, {range_start:Int64})
        and {{search}},
      0,
      -1
    ) as matches,
    id,
    timestamp,
    toFloat64(reinterpretAsUInt64(toString(MD5(id)))) / 18446744073709551616 as hash,
    {{kind}} as kind,
    {{status}} as status,
    {{method}} as method,
    {{path}} as path,
    {{host}} as host,
    {{function}} as function,
    {{level}} as level,
    if(length(metadata) <= 16384, metadata, null) as small_metadata
  from {{logs}}
  where project = {project:String}
    and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
    and timestamp > least({range_start:Int64}, ifNull({baseline_start:Nullable(Int64)}, {range_start:Int64}))
    and timestamp <= greatest({range_end:Int64}, ifNull({baseline_end:Nullable(Int64)}, {range_end:Int64}))
) as records
all inner join (
  select matches, count() as total
  from (
    select
      multiIf(
        timestamp > {range_start:Int64} and timestamp <= {range_end:Int64},
        multiIf({{search}}, 1, isNull({baseline_start:Nullable(Int64)}), 0, -1),
        timestamp > ifNull({baseline_start:Nullable(Int64)}, toInt64(9223372036854775807))
          and timestamp <= ifNull({baseline_end:Nullable(Int64)}, {range_start:Int64})
          and {{search}},
        0,
        -1
      ) as matches
    from {{logs}}
    where project = {project:String}
      and timestamp > {now:Int64} - {retention_days:Int64} * 86400000000
      and timestamp > least({range_start:Int64}, ifNull({baseline_start:Nullable(Int64)}, {range_start:Int64}))
      and timestamp <= greatest({range_end:Int64}, ifNull({baseline_end:Nullable(Int64)}, {range_end:Int64}))
  )
  group by matches
) as totals using (matches)
where matches >= 0
  and hash * total <= 2000
order by hash * total, id, timestamp, kind
limit 4000
