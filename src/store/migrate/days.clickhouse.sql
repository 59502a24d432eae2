-- How many records of each day there are, and two sums over their hashes: equal in both stores, whatever the order.
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
