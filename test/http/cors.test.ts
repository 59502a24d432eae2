import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { useApp } from '../support/use-app.ts';

const CALL = '/api/endpoints/query/logs.all?project=alpha';
const OURS = 'https://dashboard.example.com';
const ALSO_OURS = 'http://localhost:3000';
const THEIRS = 'https://evil.example.com';

const corsHeadersOf = (headers: Headers) =>
  [...headers.keys()].filter(name => name.startsWith('access-control-')).sort();

describe('CORS without configured origins', () => {
  const app = useApp();

  test.each(['/health', '/openapi.json', '/api/endpoints', CALL, '/nowhere'])(
    '%s has no CORS header and no Vary: Origin',
    async path => {
      const { headers } = await app.get(path, { headers: { 'X-API-KEY': API_KEY, Origin: OURS } });
      expect(corsHeadersOf(headers)).toEqual([]);
      expect(headers.get('vary') ?? '').not.toMatch(/origin/i);
    },
  );

  test('OPTIONS is 405', async () => {
    const preflight = { Origin: OURS, 'Access-Control-Request-Method': 'GET' };
    const { status, headers } = await app.get(CALL, { method: 'OPTIONS', headers: preflight });
    expect(status).toBe(405);
    expect(headers.get('allow')).toBe('GET, HEAD, POST');
    expect(corsHeadersOf(headers)).toEqual([]);
  });
});

describe('CORS for configured origins', () => {
  const app = useApp({ corsOrigins: [OURS, ALSO_OURS] });

  const send = (path: string, origin: string | undefined, init: RequestInit = {}) =>
    app.get(path, {
      ...init,
      headers: { 'X-API-KEY': API_KEY, ...(origin === undefined ? {} : { Origin: origin }), ...init.headers },
    });

  const VARY = 'X-API-KEY, Authorization, Accept, Accept-Encoding, Origin';

  test.each([OURS, ALSO_OURS])('a page of %s may read the response and its headers', async origin => {
    const { status, headers } = await send(CALL, origin);
    expect([status, headers.get('vary')]).toEqual([200, VARY]);
    expect(headers.get('access-control-allow-origin')).toBe(origin);
    expect(headers.get('access-control-allow-credentials')).toBeNull();
    expect((await send('/health', origin)).headers.get('vary')).toMatch(/\bOrigin\b/);
    const etag = headers.get('etag') ?? '';
    const unchanged = await send(CALL, origin, { headers: { 'If-None-Match': etag } });
    expect([unchanged.status, unchanged.headers.get('access-control-allow-origin')]).toEqual([304, origin]);
    // What the typed client reads. Browsers expose Cache-Control anyway.
    const exposed = ['Cache-Control', ...(headers.get('access-control-expose-headers')?.split(/, */) ?? [])];
    const client = ['client.ts', 'error.ts', 'result.ts'].map(file =>
      readFileSync(join(import.meta.dirname, '../../client', file), 'utf8'),
    );
    const used = [...client.join('').matchAll(/headers\.get\('([^']+)'\)/g)].map(([, name = '']) => name);
    expect(used.length).toBeGreaterThan(7);
    for (const name of [
      ...used,
      'Age',
      'Cache-Status',
      'Dendro-Clipped',
      'Dendro-Data-Through',
      'ETag',
      'Retry-After',
    ])
      expect(exposed).toContain(name);
  });

  // Only an exact match counts, not a similar origin.
  test.each([
    THEIRS,
    'null',
    '*',
    `${OURS}/`,
    `${OURS}.evil.example.com`,
    `${OURS}:443`,
    'http://dashboard.example.com',
    'https://DASHBOARD.example.com',
    'https://xdashboard.example.com',
    `${OURS}, ${THEIRS}`,
    'http://localhost:30000',
    undefined,
  ])('a page of %j may not read the response', async origin => {
    const { status, headers } = await send(CALL, origin);
    expect([status, headers.get('vary')]).toEqual([200, VARY]); // other programs than browsers are not concerned
    expect(corsHeadersOf(headers)).toEqual([]);
  });

  test.each([
    ['401', CALL, { 'X-API-KEY': '' }, 401],
    ['404', '/nowhere', {}, 404],
    ['400', '/api/endpoints/query/logs.all', {}, 400],
    ['406', CALL, { Accept: 'image/png' }, 406],
    ['414', `${CALL}&x=${'x'.repeat(8200)}`, {}, 414],
  ])('an error can be read by the same pages only: %s', async (_, path, headers, expected) => {
    const ours = await send(path, OURS, { headers });
    expect(ours.status).toBe(expected);
    expect(ours.headers.get('access-control-allow-origin')).toBe(OURS);
    expect(ours.headers.get('vary')).toMatch(/\bOrigin\b/);
    expect(corsHeadersOf((await send(path, THEIRS, { headers })).headers)).toEqual([]);
  });

  describe('a CORS preflight request', () => {
    const preflight = (path: string, origin: string) =>
      app.get(path, {
        method: 'OPTIONS',
        headers: {
          Origin: origin,
          'Access-Control-Request-Method': 'GET',
          'Access-Control-Request-Headers': 'x-api-key',
        },
      });

    test('gets a response without a token, which allows only methods that read', async () => {
      const { status, headers, text } = await preflight(CALL, OURS);
      expect({ status, text }).toEqual({ status: 204, text: '' });
      expect(headers.get('content-length')).toBeNull(); // RFC 9110, section 8.6
      expect(headers.get('access-control-allow-origin')).toBe(OURS);
      expect(headers.get('access-control-allow-methods')).toBe('GET, HEAD, POST');
      const { headers: ofCatalog } = await preflight('/api/endpoints', OURS);
      expect(ofCatalog.get('access-control-allow-methods')).toBe('GET, HEAD');
      const allowed = headers.get('access-control-allow-headers')?.toLowerCase().split(/, */) ?? [];
      for (const name of ['x-api-key', 'authorization', 'content-type', 'cache-control', 'if-none-match'])
        expect(allowed).toContain(name);
      expect(Number(headers.get('access-control-max-age'))).toBeGreaterThan(0);
      expect(headers.get('vary')).toMatch(/\bOrigin\b/);
      expect((await preflight(CALL, THEIRS)).headers.get('access-control-allow-origin')).toBeNull();
      expect((await preflight('/nowhere', OURS)).status).toBe(404);
    });
  });

  test('the internal listener has no CORS headers', async () => {
    const response = await fetch(`${app.internalUrl}/health`, { headers: { Origin: OURS } });
    await response.text();
    expect(corsHeadersOf(response.headers)).toEqual([]);
  });
});
