// Stands for Supabase Studio, which cannot be run here: sends the queries that it generates, and reads responses as it does. Written
// from a description of its requests.
import { expect } from 'vitest';
import { API_KEY, type TestApp, type TestResponse } from './app.ts';

/** Let the key of the tests send queries. */
export const STUDIO_CONFIG = {
  studio: true,
  environmentKeys: [{ name: 'DENDRO_QUERY_KEY', secret: API_KEY, scopes: ['query', 'studio'] }],
};

interface StudioTable {
  /** What a page lists besides id, timestamp and event_message. */
  readonly columns?: string;
  readonly joins?: string;
  /** Of the chart. */
  readonly errors?: string;
  readonly warnings?: string;
}

const UNNEST = 'cross join unnest';

/** The tables of Studio's pages. */
export const STUDIO_TABLES: Readonly<Record<string, StudioTable>> = {
  edge_logs: {
    columns: 'request.method, request.path, request.search, response.status_code',
    joins: `${UNNEST}(metadata) as m ${UNNEST}(m.request) as request ${UNNEST}(m.response) as response`,
    errors: 'response.status_code >= 500',
    warnings: 'response.status_code >= 400 and response.status_code < 500',
  },
  postgres_logs: {
    columns: 'parsed.error_severity, parsed.detail, parsed.hint',
    joins: `${UNNEST}(metadata) as m ${UNNEST}(m.parsed) as parsed`,
    errors: "parsed.error_severity in ('ERROR', 'FATAL', 'PANIC')",
    warnings: "parsed.error_severity in ('WARNING')",
  },
  function_edge_logs: {
    columns: 'm.function_id, m.execution_time_ms, request.method, response.status_code',
    joins: `${UNNEST}(metadata) as m ${UNNEST}(m.response) as response ${UNNEST}(m.request) as request`,
    errors: 'response.status_code between 500 and 599',
    warnings: 'response.status_code between 400 and 499',
  },
  function_logs: {
    columns: 'metadata.event_type, metadata.function_id, metadata.execution_id, metadata.level',
    joins: `${UNNEST}(metadata) as metadata`,
    errors: "metadata.level in ('error', 'fatal')",
    warnings: "metadata.level in ('warning')",
  },
  auth_logs: {
    columns: 'metadata.level, metadata.status, metadata.path, metadata.msg as msg, metadata.error',
    joins: `${UNNEST}(metadata) as metadata`,
    errors: "metadata.level in ('error', 'fatal') or metadata.status >= 500",
    warnings: "metadata.level in ('warning')",
  },
  realtime_logs: {},
  storage_logs: {},
  postgrest_logs: {},
  pgbouncer_logs: {},
  supavisor_logs: {},
  auth_audit_logs: {},
  pg_upgrade_logs: {},
  pg_cron_logs: {},
  etl_replication_logs: {},
  multigres_logs: {},
};

export class StudioClient {
  readonly #app: TestApp;
  /** What Studio sends with every request. Self-hosted, the project is always `default`. */
  readonly #parameters: Readonly<Record<string, string>>;

  constructor(app: TestApp, parameters: Readonly<Record<string, string>> = {}) {
    this.#app = app;
    this.#parameters = { project: 'default', ...parameters };
  }

  async send(sql: string): Promise<TestResponse> {
    return this.#app.query('logs.all', { ...this.#parameters, sql });
  }

  /** Rows, or the message that Studio shows. */
  async query(sql: string): Promise<Record<string, unknown>[]> {
    const { status, rows, error, headers } = await this.send(sql);
    expect([sql, status, error?.message]).toEqual([sql, 200, undefined]);
    expect(headers.get('dendro-ignored')).toBeNull();
    return rows;
  }

  /** The list of a log page. */
  async rows(table: string, where = '', limit = 100): Promise<Record<string, unknown>[]> {
    const { columns, joins = '' } = STUDIO_TABLES[table] ?? {};
    const list = ['id', `${table}.timestamp`, 'event_message', ...(columns === undefined ? [] : [columns])];
    const rows = await this.query(
      `-- a page of ${table}\nselect ${list.join(', ')} from ${table}\n  ${joins} ${where}\n  order by timestamp desc\n  limit ${limit};`,
    );
    for (const { timestamp } of rows) expect(String(timestamp)).toMatch(/^\d{16}$/);
    return rows;
  }

  /** The list of the Cron page, which reads the logs of Postgres. */
  cronRows(): Promise<Record<string, unknown>[]> {
    return this.query(
      `select id, postgres_logs.timestamp, event_message, parsed.error_severity, parsed.query
        from postgres_logs cross join unnest(metadata) as m cross join unnest(m.parsed) as parsed
        where (parsed.application_name = 'pg_cron' or event_message like '%cron job%')
        order by timestamp desc limit 100`,
    );
  }

  /** The number of records on a page, which Studio reads once a minute. */
  async count(table: string, where = ''): Promise<unknown> {
    const { joins = '' } = STUDIO_TABLES[table] ?? {};
    const result = await this.query(`SELECT COUNT(*) as count FROM \`${table}\` ${joins} ${where}`);
    expect(result).toHaveLength(1);
    return result[0]?.['count'];
  }

  /** The bars of a chart, with those of buckets without records, from `start` to `end` in milliseconds. */
  async chart(
    table: string,
    unit: 'minute' | 'hour' | 'day',
    [start, end]: readonly [number, number],
    where = '',
  ): Promise<{ ok_count: number; error_count: number; warning_count: number }[]> {
    const { joins = '', errors = 'false', warnings = 'false' } = STUDIO_TABLES[table] ?? {};
    const since = new Date(start).toISOString();
    const conditions = [`t.timestamp > '${since}'`, ...(where === '' ? [] : [where.replace(/^where /, '')])];
    const rows = await this.query(`
      SELECT
        timestamp_trunc(t.timestamp, ${unit}) as timestamp,
        count(CASE WHEN NOT (${errors}) AND NOT (${warnings}) THEN 1 END) as ok_count,
        count(CASE WHEN ${errors} THEN 1 END) as error_count,
        count(CASE WHEN ${warnings} THEN 1 END) as warning_count,
      FROM ${table} t ${joins.replace('(metadata)', '(t.metadata)')}
      WHERE ${conditions.join(' AND ')}
      GROUP BY timestamp
      ORDER BY timestamp ASC`);
    const size = { minute: 60_000, hour: 3_600_000, day: 86_400_000 }[unit];
    const byTime = new Map(rows.map(row => [Number(row['timestamp']) / 1000, row]));
    const bars: { ok_count: number; error_count: number; warning_count: number }[] = [];
    for (let at = Math.floor(start / size) * size; at <= end; at += size) {
      const {
        ok_count = 0,
        error_count = 0,
        warning_count = 0,
      } = (byTime.get(at) ?? {}) as Record<string, number>;
      byTime.delete(at);
      bars.push({ ok_count, error_count, warning_count });
    }
    expect([...byTime.keys()]).toEqual([]); // every row belongs to a bar
    return bars;
  }

  /** One record, as the panel of a log page reads it. */
  async detail(table: string, id: string): Promise<Record<string, unknown> | undefined> {
    const quoted = id.replaceAll('\\', '\\\\').replaceAll("'", "''");
    const [record] = await this.query(
      `select id, timestamp, event_message, metadata from ${table} where id = '${quoted}' limit 1`,
    );
    return record;
  }
}

/** The queries that the logs explorer offers, and what they return for the records of the tests. */
export const STUDIO_TEMPLATES: Readonly<Record<string, string>> = {
  'metadata IP': `select cast(timestamp as datetime) as timestamp, h.x_real_ip
    from edge_logs cross join unnest(metadata) as m cross join unnest(m.request) as r cross join unnest(r.headers) as h
    where h.x_real_ip is not null`,
  'requests by country': `select cf.country, count(*) as count
    from edge_logs cross join unnest(metadata) as m cross join unnest(m.request) as r cross join unnest(r.cf) as cf
    group by cf.country order by count desc`,
  'slow responses': `select cast(timestamp as datetime) as timestamp, event_message, r.origin_time
    from edge_logs cross join unnest(metadata) as m cross join unnest(m.response) as r
    where r.origin_time > 1000 order by timestamp desc limit 100`,
  'status 500': `select cast(timestamp as datetime) as timestamp, event_message, r.status_code
    from edge_logs cross join unnest(metadata) as m cross join unnest(m.response) as r
    where r.status_code >= 500 order by timestamp desc limit 100`,
  'top paths': `select r.path as path, r.search as params, count(timestamp) as c
    from edge_logs cross join unnest(metadata) as m cross join unnest(m.request) as r
    group by path, params order by c desc limit 100`,
  'REST requests': `select cast(timestamp as datetime) as timestamp, event_message
    from edge_logs cross join unnest(metadata) as m cross join unnest(m.request) as r
    where path like '%rest/v1%' order by timestamp desc limit 100`,
  'Postgres errors': `select cast(t.timestamp as datetime) as timestamp, p.error_severity, event_message
    from postgres_logs as t cross join unnest(metadata) as m cross join unnest(m.parsed) as p
    where p.error_severity in ('ERROR', 'FATAL', 'PANIC') order by timestamp desc limit 100`,
  'errors by user': `select count(t.timestamp) as count, p.user_name, p.error_severity
    from postgres_logs as t cross join unnest(metadata) as m cross join unnest(m.parsed) as p
    where p.error_severity in ('ERROR', 'FATAL', 'PANIC') group by 2, 3 order by count desc`,
  'commits by user': `select cast(postgres_logs.timestamp as datetime) as timestamp, event_message, parsed.user_name
    from postgres_logs left join unnest(metadata) as m on true left join unnest(m.parsed) as parsed on true
    where event_message like 'COMMIT%' and parsed.user_name = "app"`,
  'auth events': `select t.timestamp, t.event_message from auth_logs as t
    where event_message like '%token%' or regexp_contains(event_message, '(?i)LOGIN')`,
  'auth audit': 'select count(*) as count from auth_audit_logs',
  'storage objects': `select r.method as http_verb, r.path as filepath, (responseHeaders.cf_cache_status = 'HIT') as cached,
      count(*) as num_requests
    from edge_logs cross join unnest(metadata) as metadata cross join unnest(metadata.request) as r
      cross join unnest(metadata.response) as response cross join unnest(response.headers) as responseHeaders
    where (path like '%storage/v1/object/%' or path like '%storage/v1/render/%') and r.method = 'GET'
    group by 1, 2, 3 order by num_requests desc limit 100;`,
  'storage egress': `select request.path, sum(cast(h.content_length as int64)) as bytes, avg(safe_cast(h.content_length as int64)) as mean,
      min(cast(request.path as string)) as first_path, max(t.timestamp) as last
    from edge_logs t cross join unnest(t.metadata) as m cross join unnest(m.request) as request
      cross join unnest(m.response) as response left join unnest(response.headers) as h on true
    where starts_with(request.path, '/storage/v1/object')
    group by request.path having count(*) > 0 order by bytes desc, 1 asc`,
  'cache misses': `select r.path as path, r.search as search, count(id) as count
    from edge_logs f cross join unnest(f.metadata) as m cross join unnest(m.request) as r
      cross join unnest(m.response) as res cross join unnest(res.headers) as h
    where starts_with(r.path, '/storage/v1/object') and r.method = 'GET'
      and h.cf_cache_status in ('MISS', 'NONE/UNKNOWN', 'EXPIRED', 'BYPASS', 'DYNAMIC')
    group by path, search order by count desc limit 50;`,
};
