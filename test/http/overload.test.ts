import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, fetchResponse, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { BUILT_IN, type CustomEndpoints, SLEEP, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';
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
