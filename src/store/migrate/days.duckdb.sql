-- How many records of each day there are, and two sums over their hashes: equal in both stores, whatever the order.
select
  day,
  count(*) as records,
  sum(hash & 4294967295) as low,
  sum(hash >> 32) as high
from (
  select
    strftime(timestamp, '%Y-%m-%d') as day,
    md5_number_lower(concat({{fields}})) as hash
  from {{table}}
)
group by day
order by day
