-- How many records there are in each minute that has any, and about how many bytes.
select
  time_bucket(to_seconds(60), timestamp) as minute,
  count(*) as records,
  sum(strlen(id) + strlen(project) + strlen(event_message) + strlen(metadata))::bigint as bytes
from {{table}}
group by 1
order by 1
