import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { METRICS } from '../../src/observe/metrics.ts';
import { API_KEY, fetchResponse, startTestApp, type TestApp } from '../support/app.ts';
import { idsOf, sendLogs } from '../support/logs.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

let tokens: TestTokens<'metrics' | 'other' | 'pinned'>;
let app: TestApp;
beforeAll(async () => {
  tokens = await createTokens({
    metrics: { scopes: ['metrics'] },
    other: { scopes: ['query', 'ingest'] },
    pinned: { scopes: ['metrics', 'query'], projects: ['p'] },
  });
  app = await startTestApp({ tokensFile: tokens.file });
});
afterAll(async () => {
  await app.close();
  tokens.remove();
});

const send = (token = API_KEY, method = 'GET', url = app.internalUrl) =>
  fetchResponse(`${url}/metrics`, { method, headers: { 'X-API-KEY': token } });
const numberOf = async (name: string) =>
  Number(
    (await send()).text
      .split('\n')
      .find(line => line.startsWith(`${name} `))
      ?.slice(name.length + 1),
  );

describe('access to /metrics', () => {
  test.each([
    ['a token with the scope metrics gets 200', () => tokens.secrets.metrics, 200],
    ['a token without the scope metrics gets 403', () => tokens.secrets.other, 403],
    ['a token that is pinned to a project gets 403', () => tokens.secrets.pinned, 403],
    ['a request without a token gets 401', () => '', 401],
    ['a wrong token gets 401', () => 'dnd_wrong', 401],
  ])('%s', async (_, token, status) => {
    expect((await send(token())).status).toBe(status);
  });

  test('--metrics-open serves metrics without a token', async () => {
    const open = await startTestApp({ metricsOpen: true });
    try {
      expect((await send('', 'GET', open.internalUrl)).status).toBe(200);
    } finally {
      await open.close();
    }
  });

  test('other methods are 405', async () => {
    const { status, headers } = await send(API_KEY, 'POST');
    expect([status, headers.get('allow')]).toEqual([405, 'GET, HEAD']);
    expect((await send(API_KEY, 'HEAD')).status).toBe(200);
  });
});

describe('the content of /metrics', () => {
  test('is the Prometheus text format, every metric with help and type', async () => {
    const { text, headers } = await send();
    expect(headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    expect(headers.get('cache-control')).toBe('no-store');
    expect(text.endsWith('\n')).toBe(true);
    const FORM =
      /^(# HELP \w+ .+|# TYPE \w+ (counter|gauge)|\w+(\{\w+="[^"\\\n]*"(,\w+="[^"\\\n]*")*\})? -?\d+(\.\d+)?(e[+-]?\d+)?)$/;
    expect(
      text
        .trimEnd()
        .split('\n')
        .filter(line => !FORM.test(line)),
    ).toEqual([]);
    for (const [name, [type]] of Object.entries(METRICS)) {
      expect(text).toContain(`# HELP ${name} `);
      expect(text).toContain(`# TYPE ${name} ${type}\n`);
    }
  });

  test('counts records by kind and reason, and deduplicated batches', async () => {
    const body = [{ project: 'p', message: 'm', id: 'a' }, 7, {}, { message: 'm' }];
    const query = '?source_name=storage';
    await sendLogs(app.internalUrl, body, { query });
    await sendLogs(app.internalUrl, body, { query });
    await sendLogs(app.internalUrl, [8], { query });
    await expect.poll(() => idsOf(app, 'p', 'storage')).toEqual(['a']);
    const { text } = await send();
    expect(text.split('\n').filter(line => line.includes('kind="storage"'))).toEqual([
      'dendro_records_accepted_total{kind="storage"} 1',
      'dendro_records_rejected_total{kind="storage",code="not_an_object"} 2',
      'dendro_records_rejected_total{kind="storage",code="no_project"} 2',
      'dendro_batches_deduplicated_total{kind="storage"} 1',
      'dendro_records_applied_total{kind="storage"} 1',
    ]);
  });

  test('has the size of the spool and of the process, and the version', async () => {
    expect(await numberOf('dendro_spool_bytes')).toBeGreaterThan(100);
    expect(await numberOf('dendro_resident_memory_bytes')).toBeGreaterThan(1e7);
    expect(await numberOf('dendro_cpu_seconds_total')).toBeGreaterThan(0);
    expect(await numberOf('dendro_start_time_seconds')).toBe(1_794_659_696);
    await expect.poll(() => numberOf('dendro_intake_queue_bytes')).toBe(0);
    expect((await send()).text).toMatch(/^dendro_info\{version="\d+\.\d+\.\d+"\} 1$/m);
  });

  test('contains no project, token or secret', async () => {
    await sendLogs(app.internalUrl, { project: 'a-very-secret-project', message: 'm' });
    const { text } = await send();
    expect(text).not.toMatch(/a-very-secret-project|dnd_/);
    expect(text).not.toContain(API_KEY);
  });
});
