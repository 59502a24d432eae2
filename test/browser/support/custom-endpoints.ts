// Custom endpoints, to test the form, table and charts that the console creates for any endpoint.
import { type CustomEndpoints, writeEndpointFolders } from '../../support/custom-endpoints.ts';

const PROJECT = 'project: { type: text, required: true, description: Project reference. }';

export function writeCustomEndpoints(): CustomEndpoints {
  return writeEndpointFolders({
    'errors.hourly': {
      yaml: `
id: 7a9f0f6e-1f7c-4b7e-9c65-6f3a9a1c2d31
name: errors.hourly
description: Requests per hour, and their REST share.
reads: edge
parameters:
  ${PROJECT}
  period:
    type: choice
    choices: { day: { window_seconds: 86400 }, week: { window_seconds: 604800 } }
    fallback: day
    description: How far back from now.
  after: { type: timestamp, description: Only requests after this time. }
columns:
  hour: { type: utc_datetime, description: Start of the hour. }
  requests: { type: integer, description: Requests in this hour. }
  rest_share: { type: number, description: Share of requests to the REST API. }
cache: { lifetime_seconds: 60, warming_seconds: 30 }
`,
      sql: `
select
  time_bucket(interval '1 hour', timestamp) as hour,
  count(*) as requests,
  avg(case when contains(path, '/rest') then 1.0 else 0.0 end) as rest_share
from edge_logs
where project = $project
  and timestamp > $now - to_seconds($window_seconds)
  and ($after is null or timestamp > $after)
group by 1
order by 1`,
    },
    'paths.top': {
      yaml: `
id: 2c0a3df4-6a51-4b0e-8f43-0d2a7b9e5c42
name: paths.top
description: The most requested paths of one project.
reads: edge
parameters:
  ${PROJECT}
  matching: { type: pattern, description: Only paths that match. }
columns:
  path: { type: text, description: The path. }
  requests: { type: integer, description: Number of requests. }
max_rows: 5
cache: none
`,
      sql: `
select path, count(*) as requests
from edge_logs
where project = $project and ($matching is null or regexp_matches(path, $matching))
group by 1
order by 2 desc, 1`,
    },
    'records.paged': {
      yaml: `
id: 5d3c1f0a-3b0e-4a53-9a27-6c1e7f0b8d53
name: records.paged
description: The records of one project, newest first, 40 per page.
reads: edge
range: { start: after, end: before, days: retention_days }
parameters:
  ${PROJECT}
  after: { type: timestamp, description: Only records after this time. }
  before: { type: timestamp, description: Only records at or before this time. }
  period:
    type: choice
    choices: { day: { retention_days: 1 }, week: { retention_days: 7 } }
    fallback: day
    description: How far back from now.
  cursor: { type: cursor, description: Where the page starts. }
columns:
  id: { type: text, description: The id. }
  timestamp: { type: unix_microseconds, description: The time. }
max_rows: 40
cache: none
`,
      sql: `
select id, timestamp
from edge_logs
where project = $project
  and timestamp > $slice_start
  and timestamp <= $slice_end
  and ($cursor_id is null or timestamp < $cursor_timestamp or id >= $cursor_id)
order by timestamp desc, id
limit 41
offset $cursor_skip`,
    },
  });
}
