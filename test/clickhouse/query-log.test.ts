import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { BUILT_IN, type OwnEndpoints, writeOwnEndpoints } from '../support/own-endpoints.ts';

/** Answers what ClickHouse would write into its query log beside it. */
const comment = (id: string, name: string, cache: string) => ({
  yaml: `
id: ${id}
name: ${name}
description: Made for a test.
reads: edge
parameters:
  project: { type: pattern, required: true, description: Any expression. }
columns:
  comment: { type: text, description: Of the query itself. }
cache: ${cache}
`,
  sql: "select '' as comment",
  clickhouse: "select getSetting('log_comment') as comment",
});

let own: OwnEndpoints;
let app: TestApp;
const timer = new ManualTimer();
beforeAll(async () => {
  own = writeOwnEndpoints({
    asked: comment('0c5b5f6e-52a4-4f6e-8f0b-7d8f3a1c9e33', 'test.asked', 'none'),
    kept: comment(
      '1d6c6a7f-63b5-4a7f-9a1c-8e9a4b2d0f44',
      'test.kept',
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

describe('what stands in the query log of ClickHouse', () => {
  const commentOf = (rows: Record<string, unknown>[]) => String(rows[0]?.['comment']);

  test('is the endpoint, and the id that the caller was told', async () => {
    const { rows, headers } = await app.query('test.asked', { project: 'secret-value' });
    expect(headers.get('dendro-request-id')).toMatch(/^[0-9a-f-]{36}$/);
    expect(commentOf(rows)).toBe(`dendro query test.asked ${headers.get('dendro-request-id')}`);
    const again = await app.query('test.asked', { project: 'secret-value' });
    expect(commentOf(again.rows)).not.toBe(commentOf(rows));
  });

  test('is neither a token nor what a caller calls its request', async () => {
    const headers = { 'X-API-KEY': API_KEY, 'X-Request-Id': API_KEY, 'Dendro-Request-Id': API_KEY };
    const { rows } = await app.get('/api/endpoints/query/test.asked?project=p', { headers });
    expect(commentOf(rows)).toMatch(/^dendro query test\.asked [0-9a-f-]{36}$/);
  });

  test('is no id of the past where an answer was warmed, and a hit has none to tell', async () => {
    const ask = () => app.query('test.kept', { project: 'p' });
    const first = await ask();
    expect(commentOf(first.rows)).toBe(`dendro query test.kept ${first.headers.get('dendro-request-id')}`);
    const hit = await ask();
    expect([hit.text, hit.headers.get('dendro-request-id')]).toEqual([first.text, null]);
    const warmed = async () => {
      await app.pass(1_000);
      return commentOf((await ask()).rows);
    };
    await app.pass(300_000);
    await expect.poll(warmed, { timeout: 20_000 }).toBe('dendro query test.kept warming');
  });
});
