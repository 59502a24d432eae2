import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { API_KEY, fetchResponse, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import {
  BUILT_IN,
  type CustomEndpoints,
  EXPLORE,
  SLEEP,
  writeEndpointFolders,
} from '../support/custom-endpoints.ts';
import { useDirectory } from '../support/hooks.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';
import { edgeRecord } from '../support/record.ts';
import { STUDIO_CONFIG } from '../support/studio-client.ts';
import { useEndpoints, useTokens } from '../support/use-app.ts';

const SLOW = '/api/endpoints/query/test.sleep?milliseconds=60000';

describe('a server with one query at a time', () => {
  let own: CustomEndpoints;
  let dataDirectory: string;
  let app: TestApp | undefined;
  beforeAll(() => {
    own = writeEndpointFolders({ sleep: SLEEP });
    dataDirectory = mkdtempSync(join(tmpdir(), 'dendro-test-'));
  });
  afterEach(async () => {
    await app?.close();
    app = undefined;
  });
  afterAll(() => {
    own.remove();
    rmSync(dataDirectory, { recursive: true, force: true });
  });

  const start = async (queryQueueLength: number, queryTimeoutSeconds: number, accessLog = false) => {
    const limits = { queryConcurrency: 1, queryQueueLength, queryTimeoutSeconds };
    app = await startTestApp({
      endpointFolders: { builtIn: BUILT_IN, custom: own.folder },
      store: { ...testStoreOptions(dataDirectory), ...limits },
      accessLog,
    });
    return app;
  };
  const getMetrics = () =>
    fetchResponse(`${app?.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });

  test('a query over its time limit is cancelled with 504, and the next one is served', async () => {
    const { get, query } = await start(1, 1);
    const { status, error } = await get(SLOW);
    expect(status).toBe(504);
    expect(error.code).toBe('query_timeout');
    expect(error.message).toContain('1 s');
    expect((await query('logs.all', { project: 'a' })).status).toBe(200);
  });

  test('a request above the queue limit is 503 with Retry-After, and routes without the store still work', async () => {
    const { get, query, store } = await start(1, 10);
    const running = get(SLOW);
    await expect.poll(() => store.readStatistics()).toMatchObject({ runningQueries: 1 });
    const waiting = get(SLOW);
    await expect.poll(() => store.readStatistics()).toMatchObject({ waitingQueries: 1 });
    const { status, headers, error } = await query('logs.all', { project: 'a' });
    expect(status).toBe(503);
    expect(error.code).toBe('unavailable');
    expect(headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    expect((await get('/health')).status).toBe(200);
    expect((await get('/api/endpoints')).status).toBe(200);
    expect((await query('logs.all', {})).status).toBe(400);
    expect((await running).status).toBe(504);
    expect([503, 504]).toContain((await waiting).status);
    expect((await query('logs.all', { project: 'a' })).status).toBe(200);
  });

  test('the query of a client that disconnects is cancelled, and no error is logged', async () => {
    const { get, query, events } = await start(1, 28);
    const left = new AbortController();
    const running = get(SLOW, { signal: left.signal, headers: { 'X-API-KEY': API_KEY } });
    await get('/health');
    const started = performance.now();
    left.abort();
    await expect(running).rejects.toThrow();
    expect((await query('logs.all', { project: 'a' })).status).toBe(200);
    // Its own time limit would end the query only 28 s later.
    expect(performance.now() - started).toBeLessThan(20_000);
    expect(events.filter(event => event.type === 'request_failed')).toEqual([]);
  });

  test.each([
    ['one request', 1],
    ['pipelined requests', 3],
  ])(
    'of a client that disconnects, all queries are cancelled, and no response is counted or logged: %s',
    async (_, requests) => {
      const { url, get, events } = await start(5, 28, true);
      const connection = await openConnection(url);
      connection.write(rawRequest(`GET ${SLOW}`, { 'X-API-KEY': API_KEY }).repeat(requests));
      await expect.poll(async () => (await getMetrics()).text).toMatch(/^dendro_queries_running 1$/m);
      const started = performance.now();
      connection.close();
      await expect.poll(async () => (await getMetrics()).text).toMatch(/^dendro_queries_running 0$/m);
      // The time limit of the queries would end them only 28 s later.
      expect(performance.now() - started).toBeLessThan(20_000);
      expect((await get('/health')).status).toBe(200);
      const { text } = await getMetrics();
      expect(text).toMatch(/^dendro_queries_waiting 0$/m);
      expect(text).not.toMatch(/^dendro_(endpoint_)?requests_total\{.*(5xx|status="5).* [1-9]/m);
      const reported = ['request_completed', 'access', 'request_unavailable', 'request_failed'];
      const routes = events.flatMap(event =>
        reported.includes(event.type) && 'route' in event ? event.route : [],
      );
      expect(new Set(routes)).toEqual(new Set(['/health', '/metrics']));
    },
  );

  test('requests in sequence are served with a queue of length 0', async () => {
    const { query } = await start(0, 30);
    for (let i = 0; i < 10; i++) {
      expect((await query('logs.all', { project: 'a' })).status).toBe(200);
      expect((await query('usage.api-counts', { project: 'a', interval: 'daily' })).status).toBe(200);
    }
  });
});

describe('a server with many slow queries of one token', () => {
  const tokens = useTokens({ busy: {}, other: {} });
  const custom = useEndpoints({ sleep: SLEEP });

  test('the query of another token is not rejected, and runs as soon as one of the running queries ends', async () => {
    const dataDirectory = mkdtempSync(join(tmpdir(), 'dendro-test-'));
    const limits = { queryConcurrency: 1, queryQueueLength: 4, queryTimeoutSeconds: 28 };
    const { get, store, close } = await startTestApp({
      endpointFolders: { builtIn: BUILT_IN, custom: custom.folder },
      tokensFile: tokens.file,
      store: { ...testStoreOptions(dataDirectory), ...limits },
    });
    const send = (secret: string, path: string, signal?: AbortSignal) =>
      get(path, { headers: { 'X-API-KEY': secret }, ...(signal && { signal }) });
    const waitFor = (runningQueries: number, waitingQueries: number) =>
      expect.poll(() => store.readStatistics()).toMatchObject({ runningQueries, waitingQueries });
    const [first, rest] = [new AbortController(), new AbortController()];
    const sendSlow = ({ signal }: AbortController) => send(tokens.secrets.busy, SLOW, signal).catch(() => {});
    const slow = [sendSlow(first)];
    await waitFor(1, 0);
    for (let i = 0; i < 4; i++) slow.push(sendSlow(rest));
    await waitFor(1, 4);
    const { status, error } = await send(tokens.secrets.busy, SLOW);
    expect({ status, message: error.message }).toEqual({
      status: 503,
      message: 'too many queries of this token are waiting; retry in a moment',
    });
    const other = send(tokens.secrets.other, '/api/endpoints/query/logs.all?project=a');
    await waitFor(1, 5);
    first.abort();
    expect((await other).status).toBe(200);
    await waitFor(1, 3);
    rest.abort();
    await Promise.all(slow);
    await close();
    rmSync(dataDirectory, { recursive: true, force: true });
  });
});

describe('hostile patterns', () => {
  const LIMIT_SECONDS = 5;
  const PATTERN = {
    yaml: `
id: 6f0d3c1e-57b2-4d0c-9a51-0c6f0b7e2d11
name: test.pattern
description: An endpoint for tests.
reads: edge
parameters:
  pattern: { type: pattern, description: Any pattern. }
  text: { type: text, description: Any text. }
columns:
  count: { type: integer, description: The records that match. }
cache: none
`,
    sql: `select count(*) as count from edge_logs
where regexp_matches(event_message, $pattern) or regexp_matches(event_message, $text, 's')`,
  };
  const own = useEndpoints({ pattern: PATTERN });
  const directory = useDirectory();
  let app: TestApp;
  beforeEach(async () => {
    app = await startTestApp({
      ...STUDIO_CONFIG,
      endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: own.folder },
      store: { ...testStoreOptions(directory), queryTimeoutSeconds: LIMIT_SECONDS },
    });
  });
  afterEach(() => app.close());
  const WILDCARDS = ['.*', '.*?', '.', '.+', '[\\s\\S]*', '\\C*', '(?s:.*)', '(?s)(?-i).*'];
  const AROUND = [
    '(?s)X',
    '(?s)^X',
    '(?s)^.*X$',
    '(?is)X',
    '(?ms)X',
    'X',
    '(?:)(?s)X',
    '(?s:X)',
    '(?s)(?:X)',
    '(?sU)X$',
  ];
  const patterns = AROUND.flatMap(around =>
    WILDCARDS.map(wildcard => around.replace('X', () => [...'abcdefghQ'].join(wildcard))),
  );
  const likes = ['%', '_%', '%_', '%%', '%\\_%'].flatMap(wildcard =>
    ['X', '%X', '%X%', '_X_'].map(around => around.replace('X', () => [...'abcdefghQ'].join(wildcard))),
  );
  const quote = (text: string) => `'${text.replaceAll('\\', '\\\\')}'`;
  const select = (condition: string) => `select id from edge_logs where ${condition}`;
  const doors: [door: string, name: string, parameters: Record<string, string>[]][] = [
    ['usage.api-counts', 'usage.api-counts', patterns.map(project => ({ project, interval: 'hourly' }))],
    ['an own endpoint', 'test.pattern', patterns.flatMap(each => [{ pattern: each }, { text: each }])],
    [
      'a search',
      'logs.search',
      likes.map(like => ({
        project: 'p',
        query: `url:${like.replaceAll(/[%_\\]+/g, '*').slice(0, 9)} -zzz`,
      })),
    ],
    [
      'Studio',
      'logs.all',
      [
        ...likes.map(like => select(`event_message like ${quote(like)}`)),
        ...patterns.map(pattern => select(`regexp_contains(event_message, ${quote(pattern)})`)),
      ].map(sql => ({ project: 'p', sql })),
    ],
  ];

  test('each of more than 300 ends within the time limit, in every place that takes one', async () => {
    const text = 'abcdefgh'.repeat(2500);
    const at = '2026-11-14T12:34:00Z';
    await app.append('edge', [edgeRecord({ id: 'long', at, project: 'p', message: text, url: text })]);
    const slow: unknown[] = [];
    let count = 0;
    for (const [door, name, requests] of doors)
      for (const parameters of requests) {
        const startedAt = performance.now();
        const { status } = await app.query(name, parameters);
        count++;
        const seconds = (performance.now() - startedAt) / 1000;
        if (![200, 400].includes(status) || seconds > LIMIT_SECONDS + 1)
          slow.push([door, parameters, status]);
      }
    expect(slow).toEqual([]);
    expect(count).toBeGreaterThan(300);
  });
});
