-- Requests per service area and time bucket. The parameter `project` is a regular expression that the URL must match.
-- A path counts in every area whose text it contains. A bucket without matching requests returns no row.
-- Only the first 2,048 bytes of a URL are matched, or up to 3 bytes fewer, so that no character is cut.
select
  time_bucket(to_seconds($bucket_seconds), timestamp) as timestamp,
  count(*) filter (contains(path, '/rest')) as total_rest_requests,
  count(*) filter (contains(path, '/storage')) as total_storage_requests,
  count(*) filter (contains(path, '/auth')) as total_auth_requests,
  count(*) filter (contains(path, '/realtime')) as total_realtime_requests
from edge_logs
where timestamp between $now - to_seconds($window_seconds) and $now
  and regexp_matches(
    case when strlen(url) <= 2048 then url else coalesce(
      try(decode(encode(url)[:2048])),
      try(decode(encode(url)[:2047])),
      try(decode(encode(url)[:2046])),
      decode(encode(url)[:2045])
    ) end,
    $project
  )
  and ($pinned_project is null or project = $pinned_project)
group by 1
order by 1
