-- Requests per service area and time bucket, of the requests whose URL matches the pattern.
select (extract(epoch from bucket) * 1000000)::bigint,
  count(*) filter (where path like '%/rest%'),
  count(*) filter (where path like '%/storage%'),
  count(*) filter (where path like '%/auth%'),
  count(*) filter (where path like '%/realtime%')
from (
  select date_bin({bucket_seconds} * interval '1 second', timestamp, timestamp 'epoch') as bucket,
    body #>> '{metadata,request,path}' as path
  from edge_logs
  where timestamp between {now} - {window_seconds} * interval '1 second' and {now}
    and body #>> '{metadata,request,url}' ~ {project}
    and ({pinned_project} is null or body ->> 'project' = {pinned_project})
) as requests
group by bucket
order by bucket
