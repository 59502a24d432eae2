// dendro/client in a page of another origin: the built files, loaded by a browser as modules.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { basename, join } from 'node:path';
import { chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, expect, inject, test } from 'vitest';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord } from '../support/record.ts';

const CLIENT = join(import.meta.dirname, '../../dist/client');
const AT = '2026-11-14T12:00:00.000001Z';

let site: Server;
let app: TestApp;
let page: Page;
beforeAll(async () => {
  site = createServer((request, response) => {
    const name = basename(request.url ?? '');
    const isModule = name.endsWith('.js');
    response.setHeader('Content-Type', isModule ? 'text/javascript' : 'text/html');
    response.end(isModule ? readFileSync(join(CLIENT, name)) : '<!doctype html>');
  }).listen(0, '127.0.0.1');
  await once(site, 'listening');
  const origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  app = await startTestApp({ corsOrigins: [origin], cacheBytes: 1024 * 1024 }, new ManualTimer());
  await app.append('edge', [edgeRecord({ at: AT })]);
  page = await (await chromium.connect(inject('browser'))).newPage();
  await page.goto(origin);
});
afterAll(async () => {
  await page?.close();
  await app?.close();
  site?.close();
});

test('a page of another origin gets rows, headers, results by ETag, and typed errors', async () => {
  const statuses: number[] = [];
  page.on('response', response => {
    if (response.url().includes('/api/')) statuses.push(response.status());
  });
  const script = `(async () => {
    const { createClient, DendroError } = await import('/index.js');
    const client = createClient(${JSON.stringify({ url: app.url, token: API_KEY })});
    const query = options => client.query('usage.api-counts', { project: 'alpha', interval: 'daily' }, options);
    const first = await query();
    const second = await query();
    const refreshed = await query({ forceRefresh: true });
    const error = await client.query('usage.api-counts', { project: 'a', interval: 'x' }).catch(reason => reason);
    const aborted = await query({ signal: AbortSignal.abort() }).catch(reason => reason.name);
    const { code, status, param } = error;
    return { first, second, refreshed, error: error instanceof DendroError && { code, status, param }, aborted };
  })()`;
  const rows = [{ timestamp: '2026-11-14T00:00:00Z', total_rest_requests: 1 }];
  expect(await page.evaluate(script)).toMatchObject({
    first: { rows, cache: 'miss', dataThrough: AT, ageSeconds: 0, clipped: [] },
    second: { rows, cache: 'hit', dataThrough: AT },
    refreshed: { rows, cache: 'request' },
    error: { code: 'invalid_parameter', status: 400, param: 'interval' },
    aborted: 'AbortError',
  });
  expect(statuses.filter(status => status !== 204)).toEqual([200, 304, 200, 400]); // 204: CORS preflights
});
