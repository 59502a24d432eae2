import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadCatalog } from '../../src/endpoint/catalog.ts';
import { ConnectionLimit } from '../../src/http/connection-limit.ts';
import { type Listener, listen } from '../../src/http/listener.ts';
import { internalRoutes, publicRoutes } from '../../src/http/routes.ts';
import type { RouteDependencies } from '../../src/http/serving.ts';
import { UnsentResponses } from '../../src/http/unsent-responses.ts';
import { parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { readVersion } from '../../src/system/version.ts';
import { AuthThrottle } from '../../src/token/auth-throttle.ts';
import { API_KEY, fetchResponse, startTestApp, testStoreOptions } from '../support/app.ts';
import { BUILT_IN, SLEEP, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { createTempDirectory } from '../support/process.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';

const version = readVersion();
const headers = { 'X-API-KEY': API_KEY };

const PROBES = ['/health', '/health/ready', '/health/live'];

test('/health/live is 200 while ClickHouse is unreachable, and /health/ready is 503, with the same body', async () => {
  const directory = createTempDirectory();
  const clickhouse = parseClickHouseUrl('clickhouse://u:p@127.0.0.1:1/db'); // nothing listens on port 1
  const app = await startTestApp({
    storeName: 'clickhouse',
    store: { ...testStoreOptions(directory.path), clickhouse },
  });
  try {
    for (const url of [app.url, app.internalUrl]) {
      const responses = await Promise.all(PROBES.map(path => fetchResponse(`${url}${path}`, {})));
      expect(responses.map(({ status }) => status)).toEqual([503, 503, 200]);
      const body = `{"status":"unavailable","version":"${version}","store":"clickhouse"}`;
      expect(responses.map(({ text }) => text)).toEqual([body, body, body]);
    }
  } finally {
    await app.close();
    directory.remove();
  }
});

describe('GET /health', () => {
  test('is ok on both listeners when the store is open, without a token', async () => {
    const app = await startTestApp();
    try {
      for (const url of [app.url, app.internalUrl].flatMap(base => PROBES.map(path => `${base}${path}`))) {
        const response = await fetchResponse(url, {});
        expect(response.status).toBe(200);
        expect(response.text).toBe(`{"status":"ok","version":"${version}","store":"duckdb"}`);
        expect(response.headers.get('cache-control')).toBe('no-store');
      }
    } finally {
      await app.close();
    }
  });

  // The routes and a listener in the state between listening and an open store.
  describe.each(['starting', 'unavailable'] as const)('while %s', state => {
    const listeners: Listener[] = [];
    beforeAll(async () => {
      const dependencies: RouteDependencies = {
        version,
        storeName: 'duckdb',
        catalog: loadCatalog({ builtIn: BUILT_IN, custom: undefined }, 'duckdb'),
        serving: () => undefined,
        state: () => state,
        isRecoverable: () => state === 'starting',
        metricsOpen: false,
        renderMetrics: async () => '',
      };
      const address = { host: '127.0.0.1', port: 0 };
      const options = {
        address,
        corsOrigins: [],
        tls: undefined,
        connectionLimit: new ConnectionLimit(),
        authThrottle: new AuthThrottle(systemTimer),
        clientAddressOf: () => '',
        unsentResponses: new UnsentResponses({ maxBytes: 2 ** 27, minBytesPerSecond: 0 }, systemTimer),
        observe: () => {},
      };
      listeners.push(await listen({ ...options, name: 'public', routes: publicRoutes(dependencies) }));
      listeners.push(await listen({ ...options, name: 'internal', routes: internalRoutes(dependencies) }));
    });
    afterAll(async () => {
      for (const listener of listeners) await listener.close();
    });

    const send = (path: string, init: RequestInit = { headers }, listener = 0) =>
      fetchResponse(`${listeners[listener]?.url}${path}`, init);

    test('has that status on both listeners; live is 503 only if the process cannot recover', async () => {
      const live = state === 'starting' ? 200 : 503;
      const text = `{"status":"${state}","version":"${version}","store":"duckdb"}`;
      for (const listener of [0, 1])
        for (const [index, path] of PROBES.entries())
          expect(await send(path, {}, listener)).toMatchObject({ status: index === 2 ? live : 503, text });
    });

    const POST = { method: 'POST', body: '{broken' };
    test.each<[string, number, RequestInit]>([
      ['/api/endpoints', 0, {}],
      ['/api/endpoints/query/logs.all?project=a', 0, {}],
      ['/api/endpoints/query/no.such', 0, {}],
      ['/metrics', 1, {}],
      ['/api/logs', 1, POST],
    ])('%s is 503 with Retry-After, never 401, with any token', async (path, listener, init) => {
      for (const given of [headers, {}, { 'X-API-KEY': 'wrong' }]) {
        const response = await send(path, { ...init, headers: given }, listener);
        expect([response.status, response.error.code]).toEqual([503, 'unavailable']);
        expect(response.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
      }
    });

    test('path and method are checked before the state, and the OpenAPI document needs no store', async () => {
      for (const listener of [0, 1]) expect((await send('/nowhere', {}, listener)).status).toBe(404);
      expect((await send('/api/endpoints', POST)).status).toBe(405);
      expect((await send('/api/logs', {}, 1)).status).toBe(405);
      expect((await send('/openapi.json')).status).toBe(200);
    });
  });

  test('on stop, running requests finish, new ones get 503, and closing twice is safe', async () => {
    const own = writeEndpointFolders({ sleep: SLEEP });
    const app = await startTestApp({ endpointFolders: { builtIn: BUILT_IN, custom: own.folder } });
    const connection = await openConnection(app.url);
    try {
      await connection.ask(rawRequest('GET /health'));
      const slow = rawRequest('GET /api/endpoints/query/test.sleep?milliseconds=5000', headers);
      connection.write(slow);
      await expect.poll(() => app.store.readStatistics()).toMatchObject({ runningQueries: 1 });
      const closed = [app.close(), app.close()];
      // The connection accepts further requests behind a running one.
      connection.write(rawRequest('GET /health'));
      connection.write(rawRequest('GET /api/endpoints/query/logs.all?project=a', headers));
      expect(await connection.next()).toMatchObject({ status: 200, body: '{"result":[{"answer":1}]}' });
      const health = await connection.next();
      expect(health.status).toBe(503);
      expect(JSON.parse(health.body).status).toBe('unavailable');
      const rejected = await connection.next();
      expect(rejected.status).toBe(503);
      expect(rejected.headers['retry-after']).toMatch(/^[1-9]\d*$/);
      await Promise.all(closed);
      await connection.ended;
      await expect(fetch(`${app.url}/health`)).rejects.toThrow();
    } finally {
      connection.close();
      await app.close();
      own.remove();
    }
  });
});
