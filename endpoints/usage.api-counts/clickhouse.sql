-- Requests per service area and time bucket. The parameter `project` is a regular expression that the URL must match.
-- A path counts in every area whose text it contains. A bucket without matching requests returns no row.
-- Only the first 2,048 bytes of a URL are matched, or up to 3 bytes fewer, so that no character is cut.
-- The pattern gets the flags (?-is):
-- -s: in ClickHouse, unlike in RE2, a dot matches a line break by default.
-- -i: before ClickHouse runs RE2, it searches for a substring that every match must contain. It derives a wrong substring from
-- patterns such as \x61bc. It skips that search if the pattern sets the flag i, on or off.
-- The aggregation is a subquery because in ClickHouse an alias with the name of a column replaces the column in WHERE.
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
    and match(
      multiIf(
        length(url) <= 2048, url,
        isValidUTF8(substring(url, 1, 2048)), substring(url, 1, 2048),
        isValidUTF8(substring(url, 1, 2047)), substring(url, 1, 2047),
        isValidUTF8(substring(url, 1, 2046)), substring(url, 1, 2046),
        substring(url, 1, 2045)
      ),
      concat('(?-is)', {project:String})
    )
    and ({pinned_project:Nullable(String)} is null or project = ifNull({pinned_project:Nullable(String)}, ''))
  group by bucket
)
order by timestamp
