import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { consoleRoutes } from '../../src/http/console-files.ts';
import { findRoute } from '../../src/http/router.ts';
import { API_KEY } from '../support/app.ts';
import { createTempDirectory } from '../support/process.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';
import { useApp } from '../support/use-app.ts';

const BUILT = join(import.meta.dirname, '../../dist/console');
const FIRST_LOAD_LIMIT_BYTES = 120_000;

describe('the console', () => {
  let assets: string[];
  const app = useApp();
  beforeAll(async () => {
    const page = await (await fetch(app.url)).text();
    assets = [...page.matchAll(/(?:src|href)="\.(\/assets\/[^"]+)"/g)].map(match => match[1] ?? '');
  });

  /** The bytes on the wire: fetch would decompress them. */
  const raw = async (path: string, headers: Record<string, string> = {}, method = 'GET') => {
    const connection = await openConnection(app.url);
    const response = await connection.ask(rawRequest(`${method} ${path}`, headers));
    connection.close();
    return response;
  };

  const TYPES = {
    js: 'text/javascript; charset=utf-8',
    css: 'text/css; charset=utf-8',
    svg: 'image/svg+xml',
  };

  test('the page is served at / without a token, with any query parameters, and only on the public listener', async () => {
    for (const query of ['', '?view=logs&project=alpha&range=1hr']) {
      const response = await fetch(`${app.url}/${query}`);
      expect([response.status, response.headers.get('cache-control')]).toEqual([200, 'no-cache']);
      expect(response.headers.get('content-type')).toBe('text/html; charset=utf-8');
      expect(await response.text()).toBe(readFileSync(join(BUILT, 'index.html'), 'utf8'));
    }
    expect((await fetch(`${app.internalUrl}/`)).status).toBe(404);
  });

  test('assets have their type and are immutable, because their names contain a hash', async () => {
    for (const asset of assets) {
      expect(asset).toMatch(/-[\w-]{8}\.\w+$/);
      const { headers } = await fetch(`${app.url}${asset}`);
      expect(headers.get('cache-control')).toBe('public, max-age=31536000, immutable');
      expect(headers.get('content-type')).toBe(TYPES[asset.split('.').at(-1) as keyof typeof TYPES]);
      expect((await raw(`${asset}.br`)).status).toBe(404); // compressed files have no URL of their own
    }
  });

  test('the page loads the script of the theme, a script, a style and an icon from its own host only', async () => {
    expect(assets.map(asset => asset.split('.').at(-1)).sort()).toEqual(['css', 'js', 'js', 'svg']);
    const page = readFileSync(join(BUILT, 'index.html'), 'utf8');
    expect(page).not.toMatch(/(src|href)="(https?:)?\/\//);
    expect(page).not.toMatch(/<style|style=|<script(?![^>]* src=)|\son\w+=/);
  });

  test('a first load transfers less than 120 kB', async () => {
    let bytes = 0;
    for (const path of ['/', ...assets]) {
      const { headers } = await raw(path, { 'Accept-Encoding': 'gzip' }, 'HEAD');
      bytes += Number(headers['content-length']);
    }
    expect(bytes).toBeGreaterThan(10_000);
    expect(bytes).toBeLessThan(FIRST_LOAD_LIMIT_BYTES);
  });

  test('each encoding has its own ETag, which If-None-Match may name, and HEAD returns the headers of GET', async () => {
    for (const path of ['/', ...assets]) {
      const etags = new Set<string>();
      for (const coding of ['identity', 'gzip', 'br']) {
        const accept = { 'Accept-Encoding': coding };
        const { headers } = await raw(path, accept);
        const etag = String(headers['etag']);
        etags.add(etag);
        expect(etag).toMatch(/^"[\w-]{22}"$/);
        expect(headers['vary']).toBe('Accept-Encoding');
        expect(headers['content-encoding'] ?? 'identity').toBe(coding);
        const head = await raw(path, accept, 'HEAD');
        expect([head.status, head.body]).toEqual([200, '']);
        expect({ ...head.headers, date: '' }).toEqual({ ...headers, date: '' });
        const again = await raw(path, { ...accept, 'If-None-Match': `"other", W/${etag}` });
        expect([again.status, again.body]).toEqual([304, '']);
        expect(again.headers['content-security-policy']).toBeDefined();
        expect((await raw(path, { ...accept, 'If-None-Match': '"other"' })).status).toBe(200);
      }
      expect(etags.size).toBe(3);
      for (const method of ['POST', 'PUT', 'DELETE']) {
        const { status, headers } = await raw(path, {}, method);
        expect([status, headers['allow']]).toEqual([405, 'GET, HEAD']);
      }
    }
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

  test('the security headers allow only own files and own origin, no inline script and no framing', async () => {
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
