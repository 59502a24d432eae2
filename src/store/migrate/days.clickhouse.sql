-- The number of records of each day, and a checksum: the sum of the low 32 bits and the sum of the high 32 bits of their hashes.
-- The checksum does not depend on the order of the records, and both stores compute the same values.
select
  day,
  count() as records,
  sum(bitAnd(hash, 4294967295)) as low,
  sum(bitShiftRight(hash, 32)) as high
from (
  select
    toString(toDate(toDateTime(intDiv(timestamp, 1000000), 'UTC'))) as day,
    reinterpretAsUInt64(substring(MD5(concat({{fields}})), 9, 8)) as hash
  from {{table}}
)
group by day
order by day
