-- How many requests did each service area get, bucket by bucket, among those whose URL matches the pattern?
-- A path counts in every area whose text it contains. A bucket without matching requests is no row.
-- ClickHouse alone lets a dot match a line end: -s takes that back. It also looks for a text that every match has to hold before it
-- asks RE2, and finds a wrong one in patterns such as \x61bc: where letter case is mentioned (-i), it does not look.
select
  bucket as timestamp,
  total_rest_requests,
  total_storage_requests,
  total_auth_requests,
  total_realtime_requests
from (
  select
    intDiv(timestamp, {bucket_seconds:Int64} * 1000000) * ({bucket_seconds:Int64} * 1000000) as bucket,
    countIf(position(path, '/rest') > 0) as total_rest_requests,
    countIf(position(path, '/storage') > 0) as total_storage_requests,
    countIf(position(path, '/auth') > 0) as total_auth_requests,
    countIf(position(path, '/realtime') > 0) as total_realtime_requests
  from edge_logs
  where timestamp >= {now:Int64} - {window_seconds:Int64} * 1000000
    and timestamp <= {now:Int64}
    and match(url, concat('(?-is)', {project:String}))
    and ({pinned_project:Nullable(String)} is null or project = ifNull({pinned_project:Nullable(String)}, ''))
  group by bucket
)
order by timestamp
