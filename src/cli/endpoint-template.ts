// The files of a new endpoint folder: a small working endpoint with comments, for the operator to change.

/** Returns the contents of the files, by file name. */
export function createEndpointFiles(name: string, id: string): Record<string, string> {
  return {
    'endpoint.yaml': DEFINITION.replace('ID', id).replace('NAME', name),
    'duckdb.sql': DUCKDB_SQL,
    'clickhouse.sql': CLICKHOUSE_SQL,
  };
}

const DEFINITION = `# The definition of an endpoint; docs/write-endpoints.md explains every key.
id: ID
name: 'NAME'
description: Failed requests of one project by path, over the last hour or day.
reads: edge # the log kind
applies_pin: true # tokens that are pinned to projects may call it: the SQL returns only records of $project

# The SQL must use every parameter: by its name, such as project, or by a value of its choices, such as window_seconds.
parameters:
  project:
    type: text
    required: true
    description: Project reference.
  period:
    type: choice
    choices:
      hour: { window_seconds: 3600 }
      day: { window_seconds: 86400 }
    fallback: hour
    description: How far back from now.

# The columns that the SQL returns, in this order.
columns:
  path: { type: text, description: Path of the requests. }
  count: { type: integer, description: How many failed. }

max_rows: 50
cache: none # or { lifetime_seconds: 900, warming_seconds: 300 }

# dendro endpoint test stores the records in an empty store, runs the endpoint at \`now\` and compares the rows.
examples:
  - title: Requests with a status from 400 on are counted by path.
    now: 2026-01-01T12:00:00Z
    records:
      edge:
        - project: shop
          timestamp: 2026-01-01T11:59:00Z
          metadata: { request: { path: /orders }, response: { status_code: 500 } }
        - project: shop
          timestamp: 2026-01-01T11:58:00Z
          metadata: { request: { path: /orders }, response: { status_code: 200 } }
        - project: shop # its status is not a number
          timestamp: 2026-01-01T11:57:00Z
          metadata: { request: { path: /orders }, response: { status_code: unknown } }
        - project: other
          timestamp: 2026-01-01T11:59:00Z
          metadata: { request: { path: /orders }, response: { status_code: 500 } }
    parameters: { project: shop }
    rows:
      - { path: /orders, count: 1 }
`;

const DUCKDB_SQL = `-- The paths of one project, those with the most failed requests first.
-- try_cast returns null for a status that is not a number; a plain cast would make the whole query fail.
select path, count(*) as count
from edge_logs
where project = $project
  and timestamp > $now - to_seconds($window_seconds)
  and try_cast(metadata ->> '$.response.status_code' as integer) >= 400
group by path
order by count desc, path
`;

const CLICKHOUSE_SQL = `-- The paths of one project, those with the most failed requests first. Only needed with a ClickHouse store.
-- JSONExtractInt returns 0 for a status that is not a number.
select path, count() as count
from edge_logs
where project = {project:String}
  and timestamp > {now:Int64} - {window_seconds:Int64} * 1000000
  and JSONExtractInt(metadata, 'response', 'status_code') >= 400
group by path
order by count desc, path
`;
