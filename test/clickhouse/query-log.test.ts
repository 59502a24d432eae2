import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { BUILT_IN, type CustomEndpoints, writeEndpointFolders } from '../support/custom-endpoints.ts';
import { ManualTimer } from '../support/manual-timer.ts';

/** An endpoint that returns the comment of its own query, which ClickHouse writes to its query log. */
const commentEndpoint = (id: string, name: string, cache: string) => ({
  yaml: `
id: ${id}
name: ${name}
description: For tests only.
reads: edge
parameters:
  project: { type: pattern, required: true, description: Any pattern. }
columns:
  comment: { type: text, description: The log_comment of the query. }
cache: ${cache}
`,
  sql: "select '' as comment where $project <> ''",
  clickhouse: "select getSetting('log_comment') as comment where {project:String} <> ''",
});

let own: CustomEndpoints;
let app: TestApp;
const timer = new ManualTimer();
beforeAll(async () => {
  own = writeEndpointFolders({
    uncached: commentEndpoint('0c5b5f6e-52a4-4f6e-8f0b-7d8f3a1c9e33', 'test.uncached', 'none'),
    cached: commentEndpoint(
      '1d6c6a7f-63b5-4a7f-9a1c-8e9a4b2d0f44',
      'test.cached',
      '{ lifetime_seconds: 900, warming_seconds: 300 }',
    ),
  });
  const endpointFolders = { builtIn: BUILT_IN, custom: own.folder };
  app = await startTestApp({ endpointFolders, cacheBytes: 2 ** 20 }, timer);
});
afterAll(async () => {
  await app.close();
  own.remove();
});

describe('the comment of a query in the query log of ClickHouse', () => {
  const commentOf = (rows: Record<string, unknown>[]) => String(rows[0]?.['comment']);

  test('contains the endpoint and the Dendro-Request-Id of the response', async () => {
    const { rows, headers } = await app.query('test.uncached', { project: 'secret-value' });
    expect(headers.get('dendro-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(commentOf(rows)).toBe(`dendro query test.uncached ${headers.get('dendro-request-id')}`);
    const again = await app.query('test.uncached', { project: 'secret-value' });
    expect(commentOf(again.rows)).not.toBe(commentOf(rows));
  });

  test('contains neither a token nor a request id that the caller sent', async () => {
    const headers = { 'X-API-KEY': API_KEY, 'X-Request-Id': API_KEY, 'Dendro-Request-Id': API_KEY };
    const { rows } = await app.get('/api/endpoints/query/test.uncached?project=p', { headers });
    expect(commentOf(rows)).toMatch(/^dendro query test\.uncached [0-9a-f-]{36}$/);
  });

  test('says "warming" for a query of the warmer, and a cache hit has no Dendro-Request-Id', async () => {
    const request = () => app.query('test.cached', { project: 'p' });
    const first = await request();
    expect(commentOf(first.rows)).toBe(`dendro query test.cached ${first.headers.get('dendro-request-id')}`);
    const hit = await request();
    expect([hit.text, hit.headers.get('dendro-request-id')]).toEqual([first.text, null]);
    const commentAfterWarming = async () => {
      await app.pass(1_000);
      return commentOf((await request()).rows);
    };
    await app.pass(300_000);
    await expect.poll(commentAfterWarming, { timeout: 20_000 }).toBe('dendro query test.cached warming');
  });
});
