import { setTimeout as sleep } from 'node:timers/promises';
import { beforeAll, describe, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { type Endpoint, loadCatalog } from '../../src/endpoint/catalog.ts';
import { bindParameters } from '../../src/endpoint/parameters.ts';
import type { Store } from '../../src/store/store.ts';
import { Studio } from '../../src/studio/studio.ts';
import { systemClock } from '../../src/system/clock.ts';
import { micros } from '../support/app.ts';
import { BUILT_IN } from '../support/custom-endpoints.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';
import { STUDIO_CONFIG, STUDIO_TABLES, STUDIO_TEMPLATES, StudioClient } from '../support/studio-client.ts';
import { useApp } from '../support/use-app.ts';

// The clock of the tests is fixed at 2026-11-14T12:34:56.789012Z.
const at = (minute: number, second = 0) =>
  `2026-11-14T12:${String(minute).padStart(2, '0')}:${String(second).padStart(2, '0')}.123456Z`;

/** Wrapped in arrays, as Supabase's own shipper writes records, or not. */
const request = (
  id: string,
  minute: number,
  path: string,
  status: number,
  more: Record<string, unknown> = {},
) =>
  edgeRecord({
    id,
    at: at(minute),
    project: 'default',
    message: `GET | ${status} | ${path}`,
    metadata: {
      request: { method: 'GET', path, search: '?a=1', ...(more['request'] as object) },
      response: { status_code: status, ...(more['response'] as object) },
    },
    path,
  });

const POSTGRES = (id: string, minute: number, severity: string, message: string, user = 'app') =>
  record({
    id,
    at: at(minute),
    project: 'default',
    message,
    metadata: {
      host: 'db',
      parsed: [{ error_severity: severity, user_name: user, detail: null, hint: 'try again' }],
    },
  });

const RECORDS: Partial<Record<LogKind, ReturnType<typeof record>[]>> = {
  edge: [
    request('e1', 1, '/rest/v1/todos', 200, {
      request: { cf: { country: 'DE' }, headers: { x_real_ip: '10.1.2.3' } },
    }),
    request('e2', 2, '/rest/v1/todos', 404, {
      request: { cf: { country: 'FR' }, headers: {} },
      response: { origin_time: 1500 },
    }),
    request('e3', 2, '/storage/v1/object/a.png', 200, {
      request: { cf: { country: 'DE' } },
      response: { headers: { cf_cache_status: 'HIT', content_length: '120' } },
    }),
    request('e4', 5, '/storage/v1/object/b.png', 503, {
      response: { headers: { cf_cache_status: 'MISS', content_length: '80' } },
    }),
    edgeRecord({ id: 'e5', at: at(6), project: 'default', message: 'no objects', metadata: { note: 'x' } }),
    edgeRecord({
      id: 'e6',
      at: at(7),
      project: 'default',
      metadata: { request: [{ method: 'POST', path: '/auth/v1/token' }], response: [{ status_code: 201 }] },
    }),
    edgeRecord({ id: 'other', at: at(7), project: 'secret', metadata: { request: {}, response: {} } }),
  ],
  postgres: [
    POSTGRES('p1', 1, 'LOG', 'COMMIT of app'),
    POSTGRES('p2', 2, 'ERROR', "it's broken: 100% \\ lost"),
    POSTGRES('p3', 3, 'FATAL', 'gone', 'admin'),
    POSTGRES('p4', 3, 'WARNING', 'careful'),
  ],
  function_edge: [
    functionEdgeRecord({
      id: 'f1',
      at: at(1),
      project: 'default',
      metadata: {
        function_id: 'hello',
        execution_time_ms: 12,
        request: { method: 'GET' },
        response: { status_code: 500 },
      },
    }),
  ],
  function: [
    record({
      id: 'l1',
      at: at(1),
      project: 'default',
      metadata: { event_type: 'Log', function_id: 'hello', execution_id: 'x1', level: 'error' },
    }),
  ],
  auth: [
    record({
      id: 'a1',
      at: at(1),
      project: 'default',
      message: 'Login ok',
      metadata: { level: 'info', status: 200, path: '/token', msg: 'm' },
    }),
    record({
      id: 'a2',
      at: at(2),
      project: 'default',
      message: 'bad token',
      metadata: { level: 'warning', status: '403', error: 'no' },
    }),
  ],
  realtime: [record({ id: 'r1', at: at(1), project: 'default' })],
  storage: [record({ id: 's1', at: at(1), project: 'default' })],
  rest: [record({ id: 'h1', at: at(1), project: 'default' })],
  pooler: [record({ id: 'b1', at: at(1), project: 'default' })],
};

/** The ids that each page lists. A page of a table with joins lists only records that have the objects. */
const PAGES: Readonly<Record<string, readonly string[]>> = {
  edge_logs: ['e6', 'e4', 'e2', 'e3', 'e1'],
  postgres_logs: ['p3', 'p4', 'p2', 'p1'],
  function_edge_logs: ['f1'],
  function_logs: ['l1'],
  auth_logs: ['a2', 'a1'],
  realtime_logs: ['r1'],
  storage_logs: ['s1'],
  postgrest_logs: ['h1'],
  pgbouncer_logs: ['b1'],
  supavisor_logs: ['b1'],
};

describe('the pages of Studio', () => {
  const app = useApp(STUDIO_CONFIG);
  const studio = new StudioClient(app);
  beforeAll(async () => {
    for (const [kind, records] of Object.entries(RECORDS)) await app.append(kind as LogKind, records);
  });

  test.each(Object.keys(STUDIO_TABLES))('%s: rows, count and detail', async table => {
    const expected = PAGES[table] ?? [];
    const rows = await studio.rows(table);
    expect(rows.map(row => row['id'])).toEqual(expected);
    expect(await studio.rows(table, '', 1)).toEqual(rows.slice(0, 1));
    expect(await studio.count(table)).toBe(expected.length);
    for (const row of rows.slice(0, 1)) {
      const { id, timestamp, event_message } = row;
      expect(await studio.detail(table, String(id))).toMatchObject({
        id,
        timestamp,
        event_message,
        metadata: [{}],
      });
    }
    expect(await studio.detail(table, 'nobody')).toBeUndefined();
  });

  test('a row has the fields of its page under the last part of their names', async () => {
    expect(await studio.rows('edge_logs', '', 2)).toEqual([
      {
        id: 'e6',
        timestamp: Number(micros(at(7))),
        event_message: 'something happened',
        method: 'POST',
        path: '/auth/v1/token',
        search: null,
        status_code: 201,
      },
      {
        id: 'e4',
        timestamp: Number(micros(at(5))),
        event_message: 'GET | 503 | /storage/v1/object/b.png',
        method: 'GET',
        path: '/storage/v1/object/b.png',
        search: '?a=1',
        status_code: 503,
      },
    ]);
    expect(await studio.rows('auth_logs')).toMatchObject([
      { level: 'warning', status: '403', path: null, msg: null, error: 'no' },
      { level: 'info', status: 200, path: '/token', msg: 'm', error: null },
    ]);
    expect(await studio.rows('postgres_logs', '', 1)).toMatchObject([
      { error_severity: 'FATAL', detail: null, hint: 'try again' },
    ]);
  });

  test('the Cron page lists records of Postgres', async () => {
    const parsed = { error_severity: 'LOG', application_name: 'pg_cron', query: 'select 1' };
    const metadata = { parsed: [parsed] };
    await app.append('postgres', [
      record({ id: 'c1', at: at(9), project: 'cron', message: 'cron job 1 starting', metadata }),
      record({ id: 'c2', at: at(9), project: 'cron', message: 'COMMIT', metadata: { parsed: {} } }),
    ]);
    expect(await new StudioClient(app, { project: 'cron' }).cronRows()).toEqual([
      {
        id: 'c1',
        timestamp: Number(micros(at(9))),
        event_message: 'cron job 1 starting',
        error_severity: 'LOG',
        query: 'select 1',
      },
    ]);
  });

  test('metadata has every object in an array, at every level', async () => {
    expect((await studio.detail('edge_logs', 'e3'))?.['metadata']).toEqual([
      {
        request: [
          { method: 'GET', path: '/storage/v1/object/a.png', search: '?a=1', cf: [{ country: 'DE' }] },
        ],
        response: [{ status_code: 200, headers: [{ cf_cache_status: 'HIT', content_length: '120' }] }],
      },
    ]);
  });

  test('charts count by bucket, and a bucket without records has no row', async () => {
    const range = [Date.parse('2026-11-14T12:00:00Z'), Date.parse('2026-11-14T12:07:59Z')] as const;
    expect(await studio.chart('edge_logs', 'minute', range)).toEqual([
      { ok_count: 0, error_count: 0, warning_count: 0 },
      { ok_count: 1, error_count: 0, warning_count: 0 },
      { ok_count: 1, error_count: 0, warning_count: 1 },
      { ok_count: 0, error_count: 0, warning_count: 0 },
      { ok_count: 0, error_count: 0, warning_count: 0 },
      { ok_count: 0, error_count: 1, warning_count: 0 },
      { ok_count: 0, error_count: 0, warning_count: 0 },
      { ok_count: 1, error_count: 0, warning_count: 0 },
    ]);
    for (const unit of ['hour', 'day'] as const) {
      expect(await studio.chart('postgres_logs', unit, range)).toEqual([
        { ok_count: 1, error_count: 2, warning_count: 1 },
      ]);
      for (const table of Object.keys(STUDIO_TABLES)) {
        const bars = await studio.chart(table, unit, range);
        const total = bars.reduce((sum, bar) => sum + bar.ok_count + bar.error_count + bar.warning_count, 0);
        expect([table, total]).toEqual([table, PAGES[table]?.length ?? 0]);
      }
    }
  });

  test.each([
    ["where regexp_contains(event_message, 'todos')", 'edge_logs', ['e2', 'e1']],
    ["where response.status_code >= 400 and request.path like '/rest%'", 'edge_logs', ['e2']],
    [
      "where (response.status_code between 500 and 599 or request.method != 'GET')",
      'edge_logs',
      ['e6', 'e4'],
    ],
    ["where request.search is null and request.method not in ('GET', 'PUT')", 'edge_logs', ['e6']],
    ["where request.search not in ('?a=1')", 'edge_logs', []],
    ["where response.status_code in (404, 201.0, '503')", 'edge_logs', ['e6', 'e4', 'e2']],
    ["where timestamp in ('2026-11-14T12:05:00.123456Z', timestamp)", 'edge_logs', PAGES['edge_logs'] ?? []],
    ["where timestamp not in ('2026-11-14T12:05:00.123456Z')", 'edge_logs', ['e6', 'e2', 'e3', 'e1']],
    ['where response.origin_time not in (1, 2)', 'edge_logs', ['e2']],
    ['where (response.origin_time between 1 and 2) is null', 'edge_logs', ['e6', 'e4', 'e3', 'e1']],
    [
      "where (id between 'e2' and 'e4') in (true) and cast(id = 'e3' as string) = 'true'",
      'edge_logs',
      ['e3'],
    ],
    [
      "where not (request.search = '?b' or request.search is null) and search = '?a=1'",
      'edge_logs',
      ['e4', 'e2', 'e3', 'e1'],
    ],
    ["where event_message like '%it''s%'", 'postgres_logs', ['p2']],
    ['where event_message like "%it\'s%"', 'postgres_logs', ['p2']],
    ["where event_message like '%100\\\\%%'", 'postgres_logs', ['p2']],
    ["where event_message like '%\\\\\\\\ lo_t'", 'postgres_logs', ['p2']],
    ["where regexp_contains(event_message, '\\\\d+%')", 'postgres_logs', ['p2']],
    ["where regexp_contains(event_message, r'\\d+%')", 'postgres_logs', ['p2']],
    ["where event_message not like '%o%'", 'postgres_logs', ['p4']],
    [
      "where lower(parsed.error_severity) = 'error' or upper(`parsed.user_name`) = 'ADMIN'",
      'postgres_logs',
      ['p3', 'p2'],
    ],
    ["where ifnull(parsed.detail, 'none') = 'none' and coalesce(parsed.hint, '') = ''", 'postgres_logs', []],
    ["where parsed.error_severity::text = 'LOG' # comment", 'postgres_logs', ['p1']],
    ["where json_value(metadata, '$.parsed.error_severity') = 'LOG' /* ; drop */", 'postgres_logs', ['p1']],
    [
      'WHERE CAST(metadata.status AS INT64) > 300 AND SAFE_CAST(metadata.msg AS int64) IS NULL',
      'auth_logs',
      ['a2'],
    ],
    ['where true and not false', 'auth_logs', ['a2', 'a1']],
    [
      "where timestamp > '2026-11-14T12:01:30Z' and timestamp <= timestamp('2026-11-14 12:03:00')",
      'auth_logs',
      ['a2'],
    ],
    ["where identifier = 'secret'", 'edge_logs', []],
  ])('a filter: %s', async (where, table, expected) => {
    expect((await studio.rows(table, where)).map(row => row['id'])).toEqual(expected);
    expect(await studio.count(table, where)).toBe(expected.length);
  });

  test('the templates of the explorer', async () => {
    const results: Record<string, unknown> = {};
    for (const [name, sql] of Object.entries(STUDIO_TEMPLATES)) results[name] = await studio.query(sql);
    expect(results).toEqual({
      'metadata IP': [{ timestamp: '2026-11-14T12:01:00.123456', x_real_ip: '10.1.2.3' }],
      'requests by country': [
        { country: 'DE', count: 2 },
        { country: 'FR', count: 1 },
      ],
      'slow responses': [
        {
          timestamp: '2026-11-14T12:02:00.123456',
          event_message: 'GET | 404 | /rest/v1/todos',
          origin_time: 1500,
        },
      ],
      'status 500': [
        {
          timestamp: '2026-11-14T12:05:00.123456',
          event_message: 'GET | 503 | /storage/v1/object/b.png',
          status_code: 503,
        },
      ],
      'top paths': [
        { path: '/rest/v1/todos', params: '?a=1', c: 2 },
        { path: '/auth/v1/token', params: null, c: 1 },
        { path: '/storage/v1/object/a.png', params: '?a=1', c: 1 },
        { path: '/storage/v1/object/b.png', params: '?a=1', c: 1 },
      ],
      'REST requests': [
        { timestamp: '2026-11-14T12:02:00.123456', event_message: 'GET | 404 | /rest/v1/todos' },
        { timestamp: '2026-11-14T12:01:00.123456', event_message: 'GET | 200 | /rest/v1/todos' },
      ],
      'Postgres errors': [
        { timestamp: '2026-11-14T12:03:00.123456', error_severity: 'FATAL', event_message: 'gone' },
        {
          timestamp: '2026-11-14T12:02:00.123456',
          error_severity: 'ERROR',
          event_message: "it's broken: 100% \\ lost",
        },
      ],
      'errors by user': [
        { count: 1, user_name: 'admin', error_severity: 'FATAL' },
        { count: 1, user_name: 'app', error_severity: 'ERROR' },
      ],
      'commits by user': [
        { timestamp: '2026-11-14T12:01:00.123456', event_message: 'COMMIT of app', user_name: 'app' },
      ],
      'auth events': [
        { timestamp: Number(micros(at(2))), event_message: 'bad token' },
        { timestamp: Number(micros(at(1))), event_message: 'Login ok' },
      ],
      'auth audit': [{ count: 0 }],
      'storage objects': [
        { http_verb: 'GET', filepath: '/storage/v1/object/a.png', cached: true, num_requests: 1 },
        { http_verb: 'GET', filepath: '/storage/v1/object/b.png', cached: false, num_requests: 1 },
      ],
      'storage egress': [
        {
          path: '/storage/v1/object/a.png',
          bytes: 120,
          mean: 120,
          first_path: '/storage/v1/object/a.png',
          last: Number(micros(at(2))),
        },
        {
          path: '/storage/v1/object/b.png',
          bytes: 80,
          mean: 80,
          first_path: '/storage/v1/object/b.png',
          last: Number(micros(at(5))),
        },
      ],
      'cache misses': [{ path: '/storage/v1/object/b.png', search: '?a=1', count: 1 }],
    });
  });

  test('a cross join drops a record without the object; a left join keeps it with nulls', async () => {
    const sql = (join: string, end: string) =>
      `select id, r.method from edge_logs cross join unnest(metadata) as m ${join} join unnest(m.request) as r ${end} where id in ('e5', 'e6')`;
    expect(await studio.query(sql('cross', ''))).toEqual([{ id: 'e6', method: 'POST' }]);
    expect(await studio.query(sql('left', 'on true'))).toEqual([
      { id: 'e6', method: 'POST' },
      { id: 'e5', method: null },
    ]);
  });

  test('distinct rows, countif, and columns without a name', async () => {
    const from = 'from edge_logs, unnest(metadata) m, unnest(m.request) r';
    const grouped = await studio.query(`select r.method as method ${from} group by 1 order by 1`);
    expect(grouped.length).toBeGreaterThan(1);
    expect(await studio.query(`select distinct r.method ${from} order by r.method`)).toEqual(grouped);
    const [counts = {}] = await studio.query(
      `select count(*), count(*) as n, countif(r.method = 'GET'), count(case when r.method = 'GET' then 1 end) as gets ${from}`,
    );
    expect(counts['f0_']).toBe(counts['n']);
    expect(counts['f1_']).toBe(counts['gets']);
    expect(counts['n']).not.toBe(counts['gets']);
    expect(await studio.query(`select upper(method) as method ${from} group by 1 order by 1`)).toEqual(
      grouped,
    );
  });

  test('min and max of a field are those of its numbers, or else of its texts', async () => {
    const sql = (end: string) =>
      `select max(m.status) as s, min(m.msg) as t, min(m.path) as p, max(m.none) as n from auth_logs, unnest(metadata) as m ${end}`;
    const row = { s: 403, t: 'm', p: '/token', n: null };
    expect(await studio.query(sql(''))).toEqual([row]);
    expect(await studio.query(sql("having max(m.status) > 402 and min(m.msg) = 'm' order by p"))).toEqual([
      row,
    ]);
    expect(await studio.query(sql('having max(m.status) > 403 or max(m.none) is not null'))).toEqual([]);
  });

  test('an alias hides a column only as a whole item, and in having', async () => {
    const hour = Number(micros('2026-11-14T12:00:00Z'));
    const sql = (end: string) =>
      `select timestamp_trunc(timestamp, hour) as timestamp, count(*) as c from auth_logs ${end}`;
    for (const group of ['timestamp_trunc(timestamp, hour)', 'timestamp', '1'])
      for (const end of ['', 'order by timestamp', 'order by timestamp_trunc(timestamp, hour)'])
        expect(await studio.query(sql(`group by ${group} ${end}`))).toEqual([{ timestamp: hour, c: 2 }]);
    expect(
      await studio.query(sql("group by 1 having timestamp = '2026-11-14T12:00:00Z' and c = 2")),
    ).toHaveLength(1);
    expect(
      await studio.query(
        'select upper(m.level) as l, count(*) as c from auth_logs, unnest(metadata) as m group by l order by lower(l)',
      ),
    ).toEqual([
      { l: 'INFO', c: 1 },
      { l: 'WARNING', c: 1 },
    ]);
  });

  test('of rows with equal values in the order, the newest come first; null is the least value', async () => {
    const sql = (order: string) =>
      `select id from edge_logs cross join unnest(metadata) as m left join unnest(m.response) as r on true order by ${order}`;
    const ids = async (order: string) => (await studio.query(sql(order))).map(row => row['id']);
    expect(await ids('status_code')).toEqual(['e5', 'e3', 'e1', 'e6', 'e2', 'e4']);
    expect(await ids('r.status_code desc')).toEqual(['e4', 'e2', 'e6', 'e3', 'e1', 'e5']);
    expect(await ids('timestamp')).toEqual(['e1', 'e2', 'e3', 'e4', 'e5', 'e6']);
    expect(await ids('r.origin_time desc, 1 desc limit 2')).toEqual(['e2', 'e6']);
  });
});

describe('the limits of a request', () => {
  const app = useApp(STUDIO_CONFIG);

  test('a response without some of the rows says so, wherever these rows are in the time range', async () => {
    const records = Array.from({ length: 1001 }, (_, i) =>
      edgeRecord({ id: `n${i}`, at: i === 0 ? '2026-11-14T01:00:00Z' : at(1), project: 'default' }),
    );
    await app.append('edge', records);
    const send = async (sql: string) => {
      const { rows, headers } = await new StudioClient(app).send(sql);
      return [rows.length, headers.get('dendro-clipped')];
    };
    expect(await send('select id from edge_logs')).toEqual([1000, 'row-limit']);
    expect(await send('select id from edge_logs limit 1000')).toEqual([1000, null]);
  });

  test('one time limit covers the checks of all patterns', async () => {
    const folders = { builtIn: BUILT_IN, custom: undefined };
    const endpoint = loadCatalog(folders, app.store.name).find('logs.all') as Endpoint;
    const values = bindParameters(endpoint.definition, new URLSearchParams({ project: 'default' }));
    const validatePattern: Store['validatePattern'] = async (...args) => {
      await sleep(200);
      return app.store.validatePattern(...args);
    };
    const store = { ...app.store, name: app.store.name, validatePattern };
    const conditions = Array.from({ length: 20 }, (_, i) => `regexp_contains(id, 'a+${i}')`);
    const compiler = new Studio({ queryConcurrency: 1, queryQueueLength: 1, queryTimeoutSeconds: 60 });
    const run = compiler.run(
      { store, clock: systemClock, timeLimitMs: 300 },
      endpoint,
      values,
      `select id from edge_logs where ${conditions.join(' or ')}`,
      {},
    );
    await expect(run).rejects.toMatchObject({ code: 'query_timeout' });
    await compiler.close();
  });
});
