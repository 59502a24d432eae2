import { describe, expect, test } from 'vitest';
import { REFUSAL_REASONS } from '../../src/domain/errors.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { INTAKE_REJECT_CODES } from '../../src/logs/rejection.ts';
import { METRICS, type MetricDefinition } from '../../src/observe/metric-definitions.ts';
import { parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { API_KEY, fetchResponse, startTestApp, testStoreOptions } from '../support/app.ts';
import { BUILT_IN, testEndpoint, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { idsOf, sendLogs } from '../support/logs.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { createTempDirectory } from '../support/process.ts';
import { useApp, useTokens } from '../support/use-app.ts';

const tokens = useTokens({
  metrics: { scopes: ['metrics'] },
  other: { scopes: ['query', 'ingest'] },
  pinned: { scopes: ['metrics', 'query'], projects: ['p'] },
  expired: { scopes: ['query'], expires_at: '2026-01-01T00:00:00Z' },
  limited: { scopes: ['query'], rate: 1e-6 },
});
const app = useApp({ tokensFile: tokens.file });

const send = (token = API_KEY, method = 'GET', url = app.internalUrl) =>
  fetchResponse(`${url}/metrics`, { method, headers: { 'X-API-KEY': token } });
const numberIn = (text: string, name: string) =>
  Number(
    text
      .split('\n')
      .find(line => line.startsWith(`${name} `))
      ?.slice(name.length + 1),
  );
const numberOf = async (name: string) => numberIn((await send()).text, name);

test('/metrics needs a token with the scope metrics and no pin, and a method that reads', async () => {
  const { metrics, other, pinned } = tokens.secrets;
  const statuses = [];
  for (const token of [metrics, other, pinned, '', 'dnd_wrong']) statuses.push((await send(token)).status);
  expect(statuses).toEqual([200, 403, 403, 401, 401]);
  const { status, headers } = await send(API_KEY, 'POST');
  expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
  expect((await send(API_KEY, 'HEAD')).status).toBe(200);
});

describe('the content of /metrics', () => {
  test('is the Prometheus text format, every metric with help and type', async () => {
    const { text, headers } = await send();
    expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(text.endsWith('\n')).toBe(true);
    const FORM =
      /^(# HELP \w+ .+|# TYPE \w+ (counter|gauge|histogram)|\w+(\{\w+="[^"\\\n]*"(,\w+="[^"\\\n]*")*\})? -?\d+(\.\d+)?(e[+-]?\d+)?|)$/;
    expect(
      text
        .trimEnd()
        .split('\n')
        .filter(line => !FORM.test(line)),
    ).toEqual([]);
    for (const [name, definition] of Object.entries(METRICS)) {
      const { type, store }: MetricDefinition = definition;
      if (store === 'clickhouse') continue;
      expect(text).toContain(`# HELP ${name} `);
      expect(text).toContain(`# TYPE ${name} ${type}\n`);
    }
  });

  test('with --project-metrics, counts requests and errors of each project', async () => {
    const counting = await startTestApp({ projectMetrics: true });
    const record = (project: string, status: number, n: number) => ({
      ...{ id: `${project} ${n}`, project, message: 'm' },
      // The three places where a sender can write it.
      ...[
        { metadata: { response: { status_code: status } } },
        { metadata: { 'response.status_code': status } },
        { response: { status_code: status } },
      ][n % 3],
    });
    const statuses = [200, 500, 503, 404];
    const body = ['a', 'b"\\', 'c\n'].flatMap(project =>
      statuses.map((status, n) => record(project, status, n)),
    );
    const [first = {}] = body;
    try {
      for (const kind of ['edge', 'function_edge', 'storage'])
        await sendLogs(counting.internalUrl, body, { query: `?source_name=${kind}` });
      await sendLogs(counting.internalUrl, body, { query: '?source_name=edge' }); // a repeat
      const many = Array.from({ length: 1_001 }, (_, n) => ({ ...first, id: `m${n}`, project: `m${n}` }));
      await sendLogs(counting.internalUrl, many, { query: '?source_name=function_edge' });
      const { text } = await send(API_KEY, 'GET', counting.internalUrl);
      const lines = text.split('\n').filter(line => /^dendro_project.*project="[^m]*"/.test(line));
      expect(lines.sort()).toEqual([
        'dendro_project_errors_total{kind="edge",project=""} 2',
        'dendro_project_errors_total{kind="edge",project="a"} 2',
        'dendro_project_errors_total{kind="edge",project="b\\"\\\\"} 2',
        'dendro_project_errors_total{kind="function_edge",project=""} 2',
        'dendro_project_errors_total{kind="function_edge",project="a"} 2',
        'dendro_project_errors_total{kind="function_edge",project="b\\"\\\\"} 2',
        'dendro_project_requests_total{kind="edge",project=""} 4',
        'dendro_project_requests_total{kind="edge",project="a"} 4',
        'dendro_project_requests_total{kind="edge",project="b\\"\\\\"} 4',
        'dendro_project_requests_total{kind="function_edge",project=""} 7',
        'dendro_project_requests_total{kind="function_edge",project="a"} 4',
        'dendro_project_requests_total{kind="function_edge",project="b\\"\\\\"} 4',
      ]);
      expect((await send()).text).not.toContain('dendro_project_requests_total{');
    } finally {
      await counting.close();
    }
  });

  test('counts records by kind and reason, and deduplicated batches', async () => {
    const body = [{ project: 'p', message: 'm', id: 'a' }, 7, {}, { message: 'm' }];
    const query = '?source_name=storage';
    await sendLogs(app.internalUrl, body, { query });
    await sendLogs(app.internalUrl, body, { query });
    await sendLogs(app.internalUrl, [8], { query });
    await expect.poll(() => idsOf(app, 'p', 'storage')).toEqual(['a']);
    // Queries can see the record just before it is counted.
    await expect.poll(() => numberOf('dendro_records_applied_total{kind="storage"}')).toBe(1);
    const { text } = await send();
    const bytes = 2 * JSON.stringify(body).length + '[8]'.length;
    const counted = text.split('\n').filter(line => /_total\{.*kind="storage".* [1-9]/.test(line));
    expect(counted).toEqual([
      'dendro_intake_requests_total{kind="storage"} 3',
      `dendro_intake_bytes_total{kind="storage"} ${bytes}`,
      'dendro_records_accepted_total{kind="storage"} 1',
      'dendro_records_rejected_total{kind="storage",code="not_an_object"} 2',
      'dendro_records_rejected_total{kind="storage",code="no_project"} 2',
      'dendro_batches_deduplicated_total{kind="storage"} 1',
      'dendro_records_applied_total{kind="storage"} 1',
    ]);
    await expect.poll(() => numberOf('dendro_records_quarantined_total')).toBe(4);
  });

  test('has the state of the process, the spool, the store and the disk', async () => {
    await expect.poll(() => numberOf('dendro_intake_queue_bytes')).toBe(0);
    const { text } = await send();
    const read = (name: string) => numberIn(text, name);
    expect(read('dendro_spool_bytes')).toBeGreaterThan(100);
    expect(read('dendro_spool_oldest_record_age_seconds')).toBe(0);
    expect(read('dendro_store_bytes')).toBe(0); // all records are in memtables
    await expect.poll(() => numberOf('dendro_memtables{state="active"}')).toBeGreaterThan(0);
    expect(read('dendro_newest_record_timestamp_seconds{kind="storage"}')).toBe(1_794_659_696.789012);
    expect(read('dendro_newest_record_timestamp_seconds{kind="auth"}')).toBeNaN(); // no record yet
    for (const name of [
      'dendro_parts_set_aside',
      'dendro_queries_waiting',
      'dendro_queries_running',
      'dendro_parts{kind="edge"}',
    ])
      expect(read(name), name).toBe(0);
    expect(read('dendro_ready')).toBe(1);
    expect(read('dendro_disk_free_bytes')).toBeGreaterThan(1e6);
    expect(read('process_resident_memory_bytes')).toBeGreaterThan(1e7);
    // The system may count CPU time in steps of 10 ms.
    await expect.poll(() => numberOf('process_cpu_seconds_total')).toBeGreaterThan(0);
    expect(read('process_start_time_seconds')).toBeGreaterThan(1e9);
    expect(read('nodejs_heap_size_used_bytes')).toBeGreaterThan(1e6);
    expect(text).toMatch(/^dendro_build_info\{version="\d+\.\d+\.\d+(-dev)?",store="duckdb"\} 1$/m);
  });

  test('has every counter whose labels are known from the start, with 0', async () => {
    const fresh = await startTestApp({ metricsOpen: true });
    try {
      const { text } = await send('', 'GET', fresh.internalUrl);
      const zeros = [
        ...LOG_KINDS.flatMap(kind => [
          `dendro_records_accepted_total{kind="${kind}"}`,
          `dendro_intake_bytes_total{kind="${kind}"}`,
          `dendro_failures_total{operation="flush",kind="${kind}"}`,
          ...INTAKE_REJECT_CODES.map(code => `dendro_records_rejected_total{kind="${kind}",code="${code}"}`),
          `dendro_flush_duration_seconds_count{kind="${kind}"}`,
        ]),
        ...REFUSAL_REASONS.map(reason => `dendro_auth_failures_total{reason="${reason}"}`),
        'dendro_failures_total{operation="spool_write",kind=""}',
        'dendro_records_quarantined_total',
        'dendro_records_expired_total',
        'dendro_compactions_total',
        'dendro_cache_refreshes_total',
        'dendro_cache_refresh_failures_total',
        'dendro_endpoint_requests_total{endpoint="logs.all",status_class="2xx",cache="bypass"}',
        'dendro_endpoint_requests_total{endpoint="usage.api-counts",status_class="5xx",cache="none"}',
        'dendro_http_request_duration_seconds_count{endpoint="logs.all",status_class="5xx"}',
        'dendro_query_store_seconds_count{endpoint="logs.all"}',
      ];
      const lines = text.split('\n');
      expect(zeros.filter(series => !lines.includes(`${series} 0`))).toEqual([]);
    } finally {
      await fresh.close();
    }
  });

  test('counts requests by endpoint, status class and cache outcome, with their durations', async () => {
    // The timer stands still: the cache warmer would run the query again.
    const cached = await startTestApp({ cacheBytes: 1e6, metricsOpen: true }, new ManualTimer());
    try {
      const stats = { project: 'p', interval: '1day' };
      for (let request = 0; request < 3; request++) await cached.query('functions.invocation-stats', stats);
      await cached.query('logs.all', { project: 'p' });
      await cached.query('logs.all', {});
      const headers = { 'X-API-KEY': API_KEY, Accept: 'text/xml' };
      for (const path of ['query/logs.all?project=p&format=xml', 'query/logs.all?project=p&timestamps=local'])
        expect((await cached.get(`/api/endpoints/${path}`)).status).toBe(400);
      expect((await cached.get('/api/endpoints/query/logs.all?project=p', { headers })).status).toBe(406);
      expect((await cached.get('/api/endpoints/explain/logs.all?project=p')).status).toBe(200);
      expect((await cached.get('/api/endpoints/explain/logs.all')).status).toBe(400);
      const { text } = await send('', 'GET', cached.internalUrl);
      const lines = text.split('\n').filter(line => / [1-9]\d*$/.test(line));
      expect(lines.filter(line => line.startsWith('dendro_endpoint_requests_total'))).toEqual([
        'dendro_endpoint_requests_total{endpoint="functions.invocation-stats",status_class="2xx",cache="hit"} 2',
        'dendro_endpoint_requests_total{endpoint="functions.invocation-stats",status_class="2xx",cache="miss"} 1',
        'dendro_endpoint_requests_total{endpoint="logs.all",status_class="2xx",cache="bypass"} 2',
        'dendro_endpoint_requests_total{endpoint="logs.all",status_class="4xx",cache="none"} 5',
      ]);
      expect(lines.filter(line => /_seconds_count\{endpoint="/.test(line))).toEqual([
        'dendro_http_request_duration_seconds_count{endpoint="functions.invocation-stats",status_class="2xx"} 3',
        'dendro_http_request_duration_seconds_count{endpoint="logs.all",status_class="2xx"} 2',
        'dendro_http_request_duration_seconds_count{endpoint="logs.all",status_class="4xx"} 5',
        'dendro_query_queue_seconds_count{endpoint="functions.invocation-stats"} 1',
        'dendro_query_queue_seconds_count{endpoint="logs.all"} 2',
        'dendro_query_store_seconds_count{endpoint="functions.invocation-stats"} 1',
        'dendro_query_store_seconds_count{endpoint="logs.all"} 2',
      ]);
      expect(lines).toContain('dendro_cache_entries 1');
    } finally {
      await cached.close();
    }
  });

  test('counts refused tokens by reason, and contains no project, token or secret', async () => {
    const read = async () => (await send()).text.match(/^dendro_auth_failures_total.*$/gm) ?? [];
    const before = await read();
    const { other, pinned, expired, limited } = tokens.secrets;
    const query = '/api/endpoints/query/logs.all?project=a-very-secret-project';
    for (const token of ['', 'dnd_wrong', other]) await send(token);
    for (const token of [pinned, expired, limited, limited])
      await app.get(query, { headers: { 'X-API-KEY': token } });
    const countIn = (line = '') => Number(line.split(' ')[1]);
    const after = await read();
    expect(after.map((line, index) => countIn(line) - countIn(before[index]))).toEqual([1, 1, 1, 1, 1, 1]);
    await sendLogs(app.internalUrl, { project: 'a-very-secret-project', message: 'm' });
    const { text } = await send();
    expect(text).not.toMatch(/a-very-secret-project|dnd_/);
    expect(text).not.toContain(API_KEY);
  });
});

test('failed refreshes of cached results are counted, and reported with their endpoint and reason', async () => {
  const custom = writeEndpointFolders({
    // Fails from 12:36 on.
    broken: testEndpoint('test.broken', {
      columns: { answer: 'integer' },
      isCached: true,
      sql: "select cast(case when $now > timestamp '2026-11-14 12:36:00' then 'x' else '1' end as integer) as answer",
    }),
  });
  const endpointFolders = { builtIn: BUILT_IN, custom: custom.folder };
  const cached = await startTestApp(
    { cacheBytes: 1e6, metricsOpen: true, endpointFolders },
    new ManualTimer(),
  );
  try {
    expect((await cached.query('test.broken', {})).rows).toEqual([{ answer: 1 }]);
    await cached.pass(300_000);
    const listFailures = () => cached.events.filter(event => event.type === 'cache_refresh_failed');
    await expect.poll(listFailures).toHaveLength(1);
    const [failure] = listFailures();
    expect(failure?.endpoint).toBe('test.broken');
    expect(String(failure?.error)).toContain("Could not convert string 'x' to INT32");
    const { text } = await send('', 'GET', cached.internalUrl);
    expect(text).toMatch(/^dendro_cache_refresh_failures_total 1$/m);
  } finally {
    await cached.close();
    custom.remove();
  }
});

test('with ClickHouse, the metrics have its hosts, the outbox and the age of the records that wait', async () => {
  const directory = createTempDirectory();
  const clickhouse = parseClickHouseUrl('clickhouse://u:p@127.0.0.1:1/db'); // nothing listens on port 1
  const remote = await startTestApp({
    storeName: 'clickhouse',
    store: { ...testStoreOptions(directory.path), clickhouse },
    metricsOpen: true,
  });
  try {
    expect((await sendLogs(remote.internalUrl, { project: 'p', message: 'm' })).status).toBe(200);
    await remote.pass(90_000);
    const read = async () => (await send('', 'GET', remote.internalUrl)).text;
    await expect.poll(read).toMatch(/^dendro_outbox_records 1$/m);
    const text = await read();
    expect(text).toMatch(/^dendro_clickhouse_host_up\{host="127.0.0.1:1"\} 0$/m);
    expect(text).toMatch(/^dendro_spool_oldest_record_age_seconds 90$/m);
    expect(text).toMatch(/^dendro_ready 0$/m);
    expect(text).toMatch(/^dendro_build_info\{version="[^"]+",store="clickhouse"\} 1$/m);
    expect(text).not.toContain('dendro_parts'); // only the embedded store has parts
    expect(text).not.toContain('dendro_store_bytes');
  } finally {
    await remote.close();
    directory.remove();
  }
});
