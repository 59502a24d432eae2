-- The number of records of each day, and a checksum: the sum of the low 32 bits and the sum of the high 32 bits of their hashes.
-- The checksum does not depend on the order of the records, and both stores compute the same values.
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
