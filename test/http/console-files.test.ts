import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { consoleRoutes } from '../../src/http/console-files.ts';
import { findRoute } from '../../src/http/router.ts';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { createTempDirectory } from '../support/process.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';

const BUILT = join(import.meta.dirname, '../../dist/console');
const FIRST_LOAD_LIMIT_BYTES = 150_000;

describe('the console', () => {
  let app: TestApp;
  let assets: string[];
  beforeAll(async () => {
    app = await startTestApp();
    const page = await (await fetch(app.url)).text();
    assets = [...page.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(match => match[1] ?? '');
  });
  afterAll(() => app.close());

  /** The bytes on the wire: fetch would decompress them. */
  const raw = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const connection = await openConnection(app.url);
    const response = await connection.ask(rawRequest(`${method} ${path}`, headers));
    connection.close();
    return response;
  };

  test('the page is served at / without a token', async () => {
    const response = await fetch(`${app.url}/`);
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
    expect(await response.text()).toBe(readFileSync(join(BUILT, 'index.html'), 'utf8'));
  });

  test('the URL of the page may have query parameters, which the page reads', async () => {
    expect((await fetch(`${app.url}/?view=logs&project=alpha&range=1hr`)).status).toBe(200);
  });

  test('the page loads the script of the theme, a script, a style and an icon from its own host only', async () => {
    expect(assets.map(asset => asset.split('.').at(-1)).sort()).toEqual(['css', 'js', 'js', 'svg']);
    const page = readFileSync(join(BUILT, 'index.html'), 'utf8');
    expect(page).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect(page).not.toMatch(/<style|style=|<script(?![^>]* src=)|\son\w+=/);
  });

  test.each([
    ['js', 'text/javascript; charset=utf-8'],
    ['css', 'text/css; charset=utf-8'],
    ['svg', 'image/svg+xml'],
  ])('%s files are served as %s', async (ending, type) => {
    const asset = assets.find(each => each.endsWith(ending));
    expect((await fetch(`${app.url}${asset}`)).headers.get('content-type')).toBe(type);
  });

  test('a first load transfers less than 150 kB', async () => {
    let bytes = 0;
    for (const path of ['/', ...assets]) {
      const { headers } = await raw(path, { 'Accept-Encoding': 'gzip' }, 'HEAD');
      bytes += Number(headers['content-length']);
    }
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(FIRST_LOAD_LIMIT_BYTES);
  });

  test('assets are immutable, because their names contain a hash; the page is revalidated', async () => {
    for (const asset of assets) {
      expect(asset).toMatch(/-[\w-]{8}\.\w+$/);
      const { headers } = await fetch(`${app.url}${asset}`);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
    }
    expect((await fetch(app.url)).headers.get('cache-control')).toBe('no-cache');
  });

  test.each(['identity', 'gzip', 'br'])(
    'If-None-Match with the ETag of the %s form returns 304',
    async coding => {
      for (const path of ['/', ...assets]) {
        const first = await raw(path, { 'Accept-Encoding': coding });
        const etag = String(first.headers['etag']);
        expect(etag).toMatch(/^"[\w-]{22}"$/);
        const again = await raw(path, { 'Accept-Encoding': coding, 'If-None-Match': `"other", W/${etag}` });
        expect(again.status).toBe(304);
        expect(again.body).toBe('');
        expect(again.headers['content-security-policy']).toBeDefined();
        const other = await raw(path, { 'Accept-Encoding': coding, 'If-None-Match': '"other"' });
        expect(other.status).toBe(200);
      }
    },
  );

  test('each encoding has its own ETag and Vary: Accept-Encoding', async () => {
    const responses = await Promise.all(
      ['identity', 'gzip', 'br'].map(coding => raw('/', { 'Accept-Encoding': coding }, 'HEAD')),
    );
    expect(new Set(responses.map(({ headers }) => headers['etag'])).size).toBe(3);
    for (const { headers } of responses) expect(headers['vary']).toBe('Accept-Encoding');
    expect(responses.map(({ headers }) => headers['content-encoding'])).toEqual([undefined, 'gzip', 'br']);
  });

  test('the compressed files decompress to the built files', () => {
    const files = readdirSync(BUILT, { recursive: true, encoding: 'utf8' }).filter(file =>
      /\.\w+\.br$/.test(file),
    );
    expect(files.length).toBeGreaterThan(3);
    for (const file of files) {
      const plain = readFileSync(join(BUILT, file.slice(0, -'.br'.length)));
      expect(brotliDecompressSync(readFileSync(join(BUILT, file))).equals(plain)).toBe(true);
      expect(gunzipSync(readFileSync(join(BUILT, file.replace(/br$/, 'gz')))).equals(plain)).toBe(true);
    }
  });

  test('the content security policy allows only own files and own origin, no inline script and no framing', async () => {
    for (const path of ['/', ...assets]) {
      const { headers } = await fetch(`${app.url}${path}`);
      const policy = new Map(
        (headers.get('content-security-policy') ?? '').split('; ').map(rule => {
          const [name = '', ...sources] = rule.split(' ');
          return [name, sources.join(' ')];
        }),
      );
      expect(policy.get('default-src')).toBe("'none'");
      for (const name of ['script-src', 'style-src', 'connect-src', 'img-src'])
        expect(policy.get(name)).toBe("'self'");
      for (const name of ['base-uri', 'form-action', 'frame-ancestors'])
        expect(policy.get(name)).toBe("'none'");
      expect(policy.get('require-trusted-types-for')).toBe("'script'");
    }
  });

  test('the page sets the usual security headers', async () => {
    const { headers } = await fetch(app.url);
    expect(Object.fromEntries(headers)).toMatchObject({
      'referrer-policy': 'no-referrer',
      'x-content-type-options': 'nosniff',
      'x-frame-options': 'DENY',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
      'permissions-policy': expect.stringContaining('geolocation=()'),
    });
  });

  test('HEAD returns the headers of GET without the body', async () => {
    for (const path of ['/', ...assets]) {
      const [get, head] = [await raw(path), await raw(path, {}, 'HEAD')];
      expect(head.status).toBe(200);
      expect(head.body).toBe('');
      expect({ ...head.headers, date: '' }).toEqual({ ...get.headers, date: '' });
    }
  });

  test.each(['POST', 'PUT', 'DELETE'])('%s is not allowed', async method => {
    for (const path of ['/', ...assets]) {
      const response = await fetch(`${app.url}${path}`, { method });
      expect(response.status).toBe(405);
      expect(response.headers.get('allow')).toBe('GET, HEAD');
    }
  });

  test.each([
    '/assets/',
    '/assets/nothing.js',
    '/assets/../index.html',
    '/assets/..%2findex.html',
    '/assets/%2e%2e%2f%2e%2e%2fhttp%2fstatic.js',
    '/assets/..%5c..%5cpackage.json',
    '/assets/../../../package.json',
    '/assets//etc/passwd',
    '/assets/constructor',
    '/assets/__proto__',
    '/index.html',
    '/index.html.br',
    '//',
  ])('%s is 404', async path => {
    const { status, body } = await raw(path, { 'X-API-KEY': API_KEY });
    expect(status).toBe(404);
    expect(JSON.parse(body).error.code).toBe('not_found');
  });

  test('the compressed files have no URL of their own', async () => {
    for (const asset of assets) expect((await raw(`${asset}.br`)).status).toBe(404);
  });

  test('the internal listener does not serve the console', async () => {
    expect((await fetch(`${app.internalUrl}/`)).status).toBe(404);
  });
});

describe('a checkout without a built console', () => {
  const empty = createTempDirectory();
  afterAll(() => empty.remove());

  const handle = (directory: string, path: string) => {
    const { route, pathParameter } = findRoute(consoleRoutes(directory), path);
    const request = { pathParameter, raw: { headers: {} } };
    return route.handle(request as unknown as Parameters<typeof route.handle>[0]);
  };

  test('the error says how to build the console', async () => {
    await expect(handle(empty.path, '/')).rejects.toThrow('npm run build');
    await expect(handle(empty.path, '/assets/index.js')).rejects.toThrow('no such file');
  });

  test('only files of known types are served', async () => {
    mkdirSync(join(empty.path, 'assets'));
    for (const ending of ['', '.gz', '.br'])
      writeFileSync(join(empty.path, 'assets', `notes.txt${ending}`), 'text');
    await expect(handle(empty.path, '/assets/notes.txt')).rejects.toThrow('no such file');
  });
});
