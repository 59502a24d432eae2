import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { API_KEY, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { createDatabase } from '../support/clickhouse.ts';
import { sendLogs } from '../support/logs.ts';
import { edgeRecord } from '../support/record.ts';
import { createDataDirectory, removeDataDirectory } from '../support/store.ts';
import { FaultyProxy } from './faulty-proxy.ts';
import { runSql } from './run-sql.ts';

// The whole service with a ClickHouse that becomes unreachable and comes back.

const AT = '2026-11-14T12:34:00Z';

let clickhouse: ClickHouseUrl;
let one: FaultyProxy;
let two: FaultyProxy;
let dataDirectory: string;
let app: TestApp;

beforeAll(async () => {
  clickhouse = await createDatabase();
});
afterAll(() => runSql(clickhouse, `drop database ${clickhouse.database}`));
beforeEach(async () => {
  [one, two] = [await FaultyProxy.open(clickhouse), await FaultyProxy.open(clickhouse)];
  dataDirectory = createDataDirectory();
});
afterEach(async () => {
  await app.close();
  await one.close();
  await two.close();
  removeDataDirectory(dataDirectory);
});

const start = async (proxies: readonly FaultyProxy[], cacheBytes = 0, intakeQueueBytes = 2 ** 28) => {
  const throughProxies = { ...clickhouse, urls: proxies.map(({ url }) => url) };
  const store = { ...testStoreOptions(dataDirectory), clickhouse: throughProxies, queryTimeoutSeconds: 60 };
  app = await startTestApp(
    {
      store,
      storeName: 'clickhouse',
      cacheBytes,
      intakeQueueBytes,
      tokensFile: `${dataDirectory}/tokens.json`,
    },
    systemTimer,
  );
};
const send = (project: string, ids: readonly string[], message = 'm', service = app) =>
  fetch(`${service.internalUrl}/api/logs?source_name=edge`, {
    method: 'POST',
    headers: { 'X-API-KEY': API_KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify(ids.map(id => ({ id, project, timestamp: AT, event_message: message }))),
  });
const idsOf = async (project: string, service = app) => {
  const { status, rows } = await service.query('logs.all', { project });
  return status === 200 ? rows.map(row => row['id']).sort() : status;
};
const healthStatus = async () => (await fetch(`${app.url}/health`)).status;

describe('while ClickHouse is unreachable', () => {
  test('from the start, records are acknowledged and queries get 503; the server recovers without a restart', async () => {
    await one.set('refused');
    await start([one]);
    expect(await healthStatus()).toBe(503);
    expect((await send('early', ['a', 'b'])).status).toBe(200);
    const { status, headers, error } = await app.query('logs.all', { project: 'early' });
    expect([status, error.code]).toEqual([503, 'unavailable']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(app.events.some(({ type }) => type === 'store_unavailable')).toBe(true);
    await one.set('none');
    await expect.poll(healthStatus).toBe(200);
    await expect.poll(() => idsOf('early')).toEqual(['a', 'b']);
    expect(app.events.some(({ type }) => type === 'store_available')).toBe(true);
  });

  test('cached results are returned, other queries get 503, and the spool is applied once afterwards', async () => {
    await start([one], 2 ** 20);
    await app.append('edge', [edgeRecord({ at: AT, project: 'cached' })]);
    const parameters = { project: 'cached', interval: 'daily' };
    expect((await app.query('usage.api-counts', parameters)).status).toBe(200);
    await one.set('refused');
    expect((await send('cached', ['c', 'd'])).status).toBe(200);
    const cached = await app.query('usage.api-counts', parameters);
    expect([cached.status, cached.headers.get('cache-status')]).toEqual([
      200,
      expect.stringContaining('hit'),
    ]);
    expect(await idsOf('cached')).toBe(503);
    expect(await healthStatus()).toBe(503);
    await one.set('none');
    await expect.poll(() => idsOf('cached')).toHaveLength(3);
    await expect.poll(healthStatus).toBe(200);
  });

  test('a full spool gets 429, and no acknowledged record is lost', async () => {
    await one.set('refused');
    await start([one], 0, 1024 * 1024);
    let acknowledged = 0;
    let status = 200;
    while (status === 200 && acknowledged < 100) {
      ({ status } = await send('bounded', [`n${acknowledged}`], 'x'.repeat(50_000)));
      if (status === 200) acknowledged++;
    }
    expect(status).toBe(429);
    expect(acknowledged).toBeGreaterThan(5);
    await one.set('none');
    await expect.poll(() => idsOf('bounded')).toHaveLength(acknowledged);
  });
});

test('after the spool was damaged, the pending block of the outbox and new records are stored', async () => {
  await one.set('refused');
  await start([one]);
  expect((await send('damaged', ['a', 'b', 'c'])).status).toBe(200);
  await expect.poll(() => existsSync(join(dataDirectory, 'clickhouse', 'edge.block'))).toBe(true);
  await app.close();
  writeFileSync(join(dataDirectory, 'spool', '000000000001.spool'), 'no block\n');
  await one.set('none');
  await start([one]);
  expect((await send('damaged', ['d', 'e'])).status).toBe(200);
  await expect.poll(() => idsOf('damaged')).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('/health follows ClickHouse while there are no requests', async () => {
  await start([one]);
  await one.set('refused');
  await expect.poll(healthStatus).toBe(503);
  await one.set('none');
  await expect.poll(healthStatus).toBe(200);
});

test('an error of ClickHouse is 503 to callers, and its text is reported to the operator', async () => {
  await start([one]);
  await runSql(clickhouse, 'rename table edge_logs to edge_logs_renamed');
  try {
    const { status, text, headers } = await app.query('logs.all', { project: 'p' });
    expect([status, text]).toEqual([503, expect.stringContaining('the store is unavailable')]);
    const failures = app.events.filter(event => event.type === 'request_unavailable');
    expect(failures).toMatchObject([{ id: headers.get('dendro-request-id') }]);
    expect(String(failures[0]?.error)).toContain('edge_logs');
  } finally {
    await runSql(clickhouse, 'rename table edge_logs_renamed to edge_logs');
  }
  expect(await idsOf('p')).toEqual([]);
});

describe('with two hosts', () => {
  test.each(['refused', 'reset', 'response truncated', 'silent', 'disk full'] as const)(
    'queries and records go to the other host if one fails (%s)',
    async fault => {
      await start([one, two]);
      await one.set(fault);
      const project = `host ${fault}`;
      for (let round = 0; round < 3; round++) {
        expect((await send(project, [`r${round}`])).status).toBe(200);
        expect((await app.query('logs.all', { project })).status).toBe(200);
      }
      await expect.poll(() => idsOf(project)).toEqual(['r0', 'r1', 'r2']);
      expect(await healthStatus()).toBe(200);
      // The failed host is used again when it is back.
      await one.set('none');
      await two.set('refused');
      await expect.poll(() => idsOf(project)).toEqual(['r0', 'r1', 'r2']);
    },
  );

  test('queries get 503 if both fail, and succeed when both are back', async () => {
    await start([one, two]);
    await Promise.all([one.set('refused'), two.set('refused')]);
    expect(await idsOf('both down')).toBe(503);
    await Promise.all([one.set('none'), two.set('none')]);
    await expect.poll(() => idsOf('both down')).toEqual([]);
  });
});

test('two servers with one ClickHouse both return the records of either, once', async () => {
  await start([one]);
  const first = app;
  const firstDirectory = dataDirectory;
  dataDirectory = createDataDirectory();
  try {
    await start([two]);
    // The same sequence numbers and the same bytes in both spools: still two records.
    for (const service of [first, app])
      expect((await send('shared', ['same'], 'm', service)).status).toBe(200);
    for (const service of [first, app])
      await expect.poll(() => idsOf('shared', service)).toEqual(['same', 'same']);
  } finally {
    await first.close();
    removeDataDirectory(firstDirectory);
  }
});

test('a missing table is reported with its kind, and all records are stored once it is back', async () => {
  await start([one]);
  const sendTo = (kind: string, id: string) =>
    sendLogs(
      app.internalUrl,
      { project: 'kinds', id, event_message: 'm' },
      { query: `?source_name=${kind}` },
    );
  await runSql(clickhouse, 'rename table auth_logs to auth_logs_renamed');
  expect((await sendTo('auth', 'a')).status).toBe(200);
  await expect
    .poll(() => app.events)
    .toContainEqual(expect.objectContaining({ type: 'apply_failed', kind: 'auth' }));
  for (const id of ['b', 'c']) expect((await sendTo('edge', id)).status).toBe(200);
  const idsIn = async (kind: string) =>
    (await runSql(clickhouse, `select id from ${kind}_logs where project = 'kinds' order by id`)).flat();
  await runSql(clickhouse, 'rename table auth_logs_renamed to auth_logs');
  await expect.poll(() => idsIn('auth')).toEqual(['a']);
  await expect.poll(() => idsIn('edge')).toEqual(['b', 'c']);
});
