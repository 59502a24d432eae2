-- Broken: a pattern can match the URLs of other projects, so it does not apply the pin.
select id, timestamp from edge_logs where regexp_matches(url, $project)
