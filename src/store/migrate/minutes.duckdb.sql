-- The number of records of each minute that has any, and their approximate size in bytes.
select
  time_bucket(to_seconds(60), timestamp) as minute,
  count(*) as records,
  sum(strlen(id) + strlen(project) + strlen(event_message) + strlen(metadata))::bigint as bytes
from {{table}}
group by minute
order by minute
