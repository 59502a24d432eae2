import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadCatalog } from '../../src/endpoint/catalog.ts';
import { type InternalDependencies, internalRoutes } from '../../src/http/internal-routes.ts';
import { type Listener, listen } from '../../src/http/listener.ts';
import { publicRoutes } from '../../src/http/public-routes.ts';
import { readVersion } from '../../src/system/version.ts';
import { API_KEY, fetchAnswer, startTestApp } from '../support/app.ts';
import { BUILT_IN, SLEEP, writeOwnEndpoints } from '../support/own-endpoints.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';

const version = readVersion();
const headers = { 'X-API-KEY': API_KEY };

describe('health', () => {
  test('is ok on both listeners once the store is open, without a token', async () => {
    const app = await startTestApp();
    try {
      for (const url of [app.url, app.internalUrl]) {
        const answer = await fetchAnswer(`${url}/health`, {});
        expect(answer.status).toBe(200);
        expect(answer.text).toBe(`{"status":"ok","version":"${version}","store":"duckdb"}`);
        expect(answer.headers.get('cache-control')).toBe('no-store');
      }
    } finally {
      await app.close();
    }
  });

  // The routes and a listener as the program has them between listening and the open store, held there.
  describe.each(['starting', 'unavailable'] as const)('while %s', state => {
    const listeners: Listener[] = [];
    beforeAll(async () => {
      const parts: InternalDependencies = {
        version,
        storeName: 'duckdb',
        catalog: loadCatalog({ builtIn: BUILT_IN, custom: undefined }, 'duckdb'),
        service: () => undefined,
        state: () => state,
        metricsOpen: false,
        renderMetrics: () => '',
      };
      const address = { host: '127.0.0.1', port: 0 };
      const options = { address, corsOrigins: [], tls: undefined, observe: () => {} };
      listeners.push(await listen({ ...options, name: 'public', routes: publicRoutes(parts) }));
      listeners.push(await listen({ ...options, name: 'internal', routes: internalRoutes(parts) }));
    });
    afterAll(async () => {
      for (const listener of listeners) await listener.close();
    });

    const ask = (path: string, init: RequestInit = { headers }, listener = 0) =>
      fetchAnswer(`${listeners[listener]?.url}${path}`, init);

    test.each([0, 1])('is 503 and says so (listener %i)', async listener => {
      const { status, text } = await ask('/health', {}, listener);
      expect(status).toBe(503);
      expect(text).toBe(`{"status":"${state}","version":"${version}","store":"duckdb"}`);
    });

    test.each(['/api/endpoints', '/api/endpoints/query/logs.all?project=a', '/api/endpoints/query/no.such'])(
      '%s is 503 with Retry-After, never 401, whatever the token',
      async path => {
        for (const given of [headers, {}, { 'X-API-KEY': 'wrong' }]) {
          const answer = await ask(path, { headers: given });
          expect(answer.status).toBe(503);
          expect(answer.error.code).toBe('unavailable');
          expect(answer.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
        }
      },
    );

    test('path and method are judged already', async () => {
      expect((await ask('/nowhere')).status).toBe(404);
      expect((await ask('/api/endpoints', { method: 'POST', headers })).status).toBe(405);
    });

    test('OpenAPI is there: it needs no store', async () => {
      expect((await ask('/openapi.json')).status).toBe(200);
    });
  });

  test('when stopping, what runs is finished, what comes then is 503, and closing twice is fine', async () => {
    const own = writeOwnEndpoints({ sleep: SLEEP });
    const app = await startTestApp({ endpointFolders: { builtIn: BUILT_IN, custom: own.folder } });
    const connection = await openConnection(app.url);
    try {
      await connection.ask(rawRequest('GET /health'));
      const slow = rawRequest('GET /api/endpoints/query/test.sleep?milliseconds=700', headers);
      connection.write(slow);
      await app.get('/health'); // answered after the slow call was taken up
      const closed = [app.close(), app.close()];
      // Behind a call that runs, the connection still takes requests.
      connection.write(rawRequest('GET /health'));
      connection.write(rawRequest('GET /api/endpoints/query/logs.all?project=a', headers));
      expect(await connection.next()).toMatchObject({ status: 200, body: '{"result":[{"answer":1}]}' });
      const health = await connection.next();
      expect(health.status).toBe(503);
      expect(JSON.parse(health.body).status).toBe('unavailable');
      const refused = await connection.next();
      expect(refused.status).toBe(503);
      expect(refused.headers['retry-after']).toMatch(/^[1-9]\d*$/);
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
