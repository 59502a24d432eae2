-- How many records there are in each minute that has any.
select
  time_bucket(to_seconds(60), timestamp) as minute,
  count(*) as records
from {{table}}
group by 1
order by 1
