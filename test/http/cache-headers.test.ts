import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, startTestApp } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { getUndecoded } from '../support/undecoded.ts';
import { useApp } from '../support/use-app.ts';

// The suite's clock is fixed at 2026-11-14T12:34:56.789012Z; time passes only when a test advances it.
describe('cache headers of a result', () => {
  let nextProject = 0;
  const app = useApp({ cacheBytes: 64 * 1024 * 1024 }, new ManualTimer());
  beforeAll(async () => {
    await app.append('function_edge', [
      functionEdgeRecord({ at: '2026-11-14T12:30:00Z', project: 'abc' }),
      functionEdgeRecord({ at: '2026-11-14T12:31:00.25Z', project: 'other' }),
      ...Array.from({ length: 30 }, (_, index) =>
        functionEdgeRecord({ at: '2026-11-14T12:30:00Z', project: `p${index}` }),
      ),
    ]);
    await app.append('edge', [edgeRecord({ at: '2026-11-14T12:00:00Z', project: 'abc' })]);
  });

  /** A path that no test has requested before, with one row. */
  const freshPath = () => `/api/endpoints/query/functions.invocation-stats?project=p${nextProject++}`;
  const get = (path: string, headers: Record<string, string> = {}) =>
    app.get(path, { headers: { 'X-API-KEY': API_KEY, ...headers } });

  test('a first request is a miss with Age 0 and a max-age until the next refresh', async () => {
    const { headers } = await get(freshPath());
    expect(headers.get('cache-status')).toBe('dendro; fwd=miss');
    expect(headers.get('age')).toBe('0');
    expect(headers.get('cache-control')).toBe('private, max-age=300');
    expect(headers.get('vary')).toBe('X-API-KEY, Authorization, Accept, Accept-Encoding');
    expect(headers.get('server-timing')).toMatch(/^cache;dur=[\d.]+, queue;dur=[\d.]+, store;dur=[\d.]+$/);
  });

  test('a later request is a hit with its Age and the remaining lifetime', async () => {
    const path = freshPath();
    await get(path);
    await app.pass(100_500);
    const { headers } = await get(path);
    expect(headers.get('cache-status')).toBe('dendro; hit; ttl=800');
    expect(headers.get('age')).toBe('100');
    expect(headers.get('cache-control')).toBe('private, max-age=300');
    expect(headers.get('server-timing')).toMatch(/^cache;dur=[\d.]+$/);
  });

  test('Dendro-Ignored names the parameters that are not declared, in hits, misses and explanations', async () => {
    const path = `${freshPath()}&projct=a&sql=select+1&timestamps=iso&intervall=1day&f%C3%BCr%0A=1&a,b=1&=1&sixth=1&projct=b`;
    const expected =
      'projct; did you mean project, sql, intervall; did you mean interval, f%C3%BCr%0A, a%2Cb';
    for (const status of ['dendro; fwd=miss', 'dendro; hit; ttl=900']) {
      const { headers } = await get(path);
      expect([headers.get('cache-status'), headers.get('dendro-ignored')]).toEqual([status, expected]);
    }
    expect((await get(path.replace('query', 'explain'))).headers.get('dendro-ignored')).toBe(expected);
    for (const unnamed of ['', '&=1'])
      expect((await get(`${freshPath()}${unnamed}`)).headers.has('dendro-ignored')).toBe(false);
    const long = (await get(`${freshPath()}&${'x'.repeat(7_000)}=1`)).headers.get('dendro-ignored');
    expect(long).toBe('x'.repeat(64));
  });

  test('a result without rows is cached for 10 s', async () => {
    const path = '/api/endpoints/query/functions.invocation-stats?project=empty';
    expect((await get(path)).headers.get('cache-control')).toBe('private, max-age=10');
    await app.pass(3_000);
    const { headers } = await get(path);
    expect(headers.get('cache-status')).toBe('dendro; hit; ttl=7');
    expect(headers.get('cache-control')).toBe('private, max-age=10');
    await app.pass(7_000);
    expect((await get(path)).headers.get('cache-status')).toBe('dendro; fwd=miss');
  });

  test('a response from the store has a request id, never the one that the client sent; a hit has none', async () => {
    const path = freshPath();
    const idOf = async (target: string) =>
      (await get(target, { 'X-Request-Id': API_KEY, 'Dendro-Request-Id': API_KEY })).headers.get(
        'dendro-request-id',
      );
    const [first, hit, other] = [await idOf(path), await idOf(path), await idOf(freshPath())];
    for (const id of [first, other]) expect(id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);
    expect([hit, first === other]).toEqual([null, false]);
  });

  test('requests by name and UUID, with undeclared parameters or equivalent values share a cache entry', async () => {
    const path = freshPath();
    await get(`${path}&interval=bogus&sql=1&format=json`);
    expect((await get(`${path}&interval=1day&_=123`)).headers.get('cache-status')).toMatch(/^dendro; hit/);
    const byId = path.replace('functions.invocation-stats', '32B1A47E-6418-4D0A-9647-B9694B8A7E35');
    expect((await get(byId)).headers.get('cache-status')).toMatch(/^dendro; hit/);
  });

  test('a requested entry is refreshed after 300 s, and no request waits for the refresh', async () => {
    const quiet = await startTestApp({ cacheBytes: 64 * 1024 * 1024 }, new ManualTimer());
    await quiet.append('function_edge', [functionEdgeRecord({ at: '2026-11-14T12:30:00Z', project: 'abc' })]);
    const send = async () => {
      const { headers } = await quiet.query('functions.invocation-stats', { project: 'abc' });
      return { status: headers.get('cache-status'), age: Number(headers.get('age')) };
    };
    try {
      await send();
      await quiet.pass(299_000);
      expect((await send()).age).toBe(299);
      await quiet.pass(2_000);
      await expect
        .poll(async () => {
          const { status, age } = await send();
          expect(status).toMatch(/^dendro; hit/);
          return age;
        })
        .toBeLessThanOrEqual(2);
    } finally {
      await quiet.close();
    }
  });

  test('Cache-Control: no-cache runs the query again, at most once in 10 s', async () => {
    const path = freshPath();
    await get(path);
    await app.pass(20_000);
    const noCache = { 'Cache-Control': 'max-age=0, no-cache' };
    expect((await get(path, noCache)).headers.get('cache-status')).toBe('dendro; fwd=request');
    const again = await get(path, noCache);
    expect(again.headers.get('cache-status')).toBe('dendro; hit; ttl=900');
    await app.pass(10_000);
    expect((await get(path, noCache)).headers.get('cache-status')).toBe('dendro; fwd=request');
  });

  test('no-cache with If-None-Match does not force a refresh, and Pragma is ignored', async () => {
    const path = freshPath();
    const { headers } = await get(path);
    const etag = headers.get('etag') ?? '';
    const revalidated = await get(path, { 'Cache-Control': 'no-cache', 'If-None-Match': etag });
    expect(revalidated.status).toBe(304);
    expect(revalidated.headers.get('cache-status')).toMatch(/^dendro; hit/);
    expect((await get(path, { Pragma: 'no-cache' })).headers.get('cache-status')).toMatch(/^dendro; hit/);
  });

  test('logs.all runs its query on every request and is marked no-store', async () => {
    const path = '/api/endpoints/query/logs.all?project=abc';
    for (let call = 0; call < 2; call++) {
      const { headers } = await get(path);
      expect(headers.get('cache-status')).toBe('dendro; fwd=bypass');
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('age')).toBe('0');
      expect(headers.get('etag')).toMatch(/^"[\w-]{22}"$/);
    }
  });

  describe('ETag, different for every format', () => {
    const path = '/api/endpoints/query/functions.invocation-stats?project=abc&interval=1hr';

    test('If-None-Match with the ETag, in a list, weak or as *, returns 304 without a body', async () => {
      const etag = (await get(path)).headers.get('etag') ?? '';
      for (const value of [etag, `"x", ${etag}`, `W/${etag}`, '*']) {
        const response = await get(path, { 'If-None-Match': value });
        expect(response.status).toBe(304);
        expect(response.text).toBe('');
        expect(response.headers.get('etag')).toBe(etag);
        expect(response.headers.get('cache-control')).toBe('private, max-age=300');
        expect(response.headers.get('dendro-data-through')).toBe('2026-11-14T12:31:00.250000Z');
      }
      expect((await get(path, { 'If-None-Match': '"other"' })).status).toBe(200);
      const formats = ['json', 'ndjson', 'csv'].map(format => get(`${path}&format=${format}`));
      const etags = (await Promise.all(formats)).map(({ headers }) => headers.get('etag'));
      expect(new Set(etags).size).toBe(3);
    });
  });

  describe('Dendro-Data-Through', () => {
    test('Dendro-Data-Through is the newest record of the log kind, of any project', async () => {
      const { headers } = await get('/api/endpoints/query/functions.invocation-stats?project=through');
      expect(headers.get('dendro-data-through')).toBe('2026-11-14T12:31:00.250000Z');
      expect((await get('/api/endpoints/query/logs.all?project=x')).headers.get('dendro-data-through')).toBe(
        '2026-11-14T12:00:00Z',
      );
    });

    test('Dendro-Data-Through is absent without records, and not later than the query if records are in the future', async () => {
      const empty = await startTestApp();
      try {
        const send = async () =>
          (await empty.query('logs.all', { project: 'x' })).headers.get('dendro-data-through');
        expect(await send()).toBeNull();
        await empty.append('edge', [edgeRecord({ at: '2026-11-14T13:00:00Z' })]);
        expect(await send()).toBeNull();
        await empty.append('edge', [edgeRecord({ at: '2026-11-14T12:34:56.789012Z' })]);
        expect(await send()).toBe('2026-11-14T12:34:56.789012Z');
        empty.setNow('2026-11-14T13:00:00Z');
        expect(await send()).toBe('2026-11-14T13:00:00Z');
      } finally {
        await empty.close();
      }
    });
  });

  test('Dendro-Clipped is retention if the requested start is before the limit of the tier', async () => {
    const clippedFor = async (start: string, tier: string) => {
      const parameters = { project: 'abc', project_tier: tier, iso_timestamp_start: start };
      return (await app.query('logs.all', parameters)).headers.get('dendro-clipped');
    };
    app.setNow('2026-11-14T12:34:56.789012Z');
    expect(await clippedFor('2026-11-13T12:34:56.789011Z', 'FREE')).toBe('retention');
    expect(await clippedFor('2026-11-13T12:34:56.789012Z', 'FREE')).toBeNull();
    expect(await clippedFor('2026-11-13T12:34:56.789011Z', 'PRO')).toBeNull();
    expect(await clippedFor('', 'FREE')).toBeNull();
  });

  describe('compression', () => {
    const path = '/api/endpoints/query/logs.all?project=large';
    beforeAll(() =>
      app.append(
        'edge',
        Array.from({ length: 50 }, (_, i) =>
          edgeRecord({ at: '2026-11-14T12:00:00Z', project: 'large', message: `line ${i}` }),
        ),
      ),
    );
    const fetchRaw = (acceptEncoding: string, target = path) =>
      getUndecoded(`${app.url}${target}`, { 'X-API-KEY': API_KEY, 'Accept-Encoding': acceptEncoding });

    test.each<[string, string | undefined]>([
      ['br', 'br'],
      ['gzip', 'gzip'],
      ['gzip, br', 'br'],
      ['br;q=0.5, gzip', 'gzip'],
      ['*', 'br'],
      ['GZIP', 'gzip'],
      ['identity', undefined],
      ['deflate', undefined],
      ['br;q=0, gzip;q=0', undefined],
      ['*;q=0', undefined],
    ])('Accept-Encoding: %s returns Content-Encoding %s', async (accept, coding) => {
      const { headers, body } = await fetchRaw(accept);
      expect(headers['content-encoding']).toBe(coding);
      const decompress = { br: brotliDecompressSync, gzip: gunzipSync, none: (bytes: Buffer) => bytes };
      const plain = decompress[(coding ?? 'none') as keyof typeof decompress](body);
      // A body of 1 kB or less is never compressed.
      const small = await fetchRaw(accept, '/api/endpoints/query/logs.all?project=nobody');
      expect(small.headers['content-encoding']).toBeUndefined();
      expect(JSON.parse(plain.toString()).result).toHaveLength(50);
      expect(Number(headers['content-length'])).toBe(body.length);
    });
  });

  test('HEAD of a cached result has the age and the lifetime of GET', async () => {
    const path = freshPath();
    const got = await get(path);
    const { headers } = await app.get(path, { method: 'HEAD' });
    for (const name of ['age', 'cache-control', 'etag', 'vary'])
      expect(headers.get(name), name).toBe(got.headers.get(name));
    expect(headers.get('cache-status')).toBe('dendro; hit; ttl=900');
  });
});
