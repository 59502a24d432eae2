import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { API_KEY, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { makeDatabase } from '../support/clickhouse.ts';
import { sendLogs } from '../support/logs.ts';
import { edgeRecord } from '../support/record.ts';
import { makeDataFolder, removeDataFolder } from '../support/store.ts';
import { ask } from './ask.ts';
import { FaultyProxy } from './faulty-proxy.ts';

// The whole service in front of a ClickHouse that goes and comes back.

const AT = '2026-11-14T12:34:00Z';

let address: ClickHouseUrl;
let one: FaultyProxy;
let two: FaultyProxy;
let dataDirectory: string;
let app: TestApp;

beforeAll(async () => {
  address = await makeDatabase();
});
afterAll(() => ask(address, `drop database ${address.database}`));
beforeEach(async () => {
  [one, two] = [await FaultyProxy.open(address), await FaultyProxy.open(address)];
  dataDirectory = makeDataFolder();
});
afterEach(async () => {
  await app.close();
  await one.close();
  await two.close();
  removeDataFolder(dataDirectory);
});

const start = async (proxies: readonly FaultyProxy[], cacheBytes = 0, intakeQueueBytes = 2 ** 28) => {
  const clickhouse = { ...address, urls: proxies.map(({ url }) => url) };
  const store = { ...testStoreOptions(dataDirectory), clickhouse, queryTimeoutSeconds: 60 };
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
const health = async () => (await fetch(`${app.url}/health`)).status;

describe('ClickHouse is away', () => {
  test('at the start: records are acknowledged, queries told to come back; then it comes back by itself', async () => {
    await one.set('refused');
    await start([one]);
    expect(await health()).toBe(503);
    expect((await send('early', ['a', 'b'])).status).toBe(200);
    const { status, headers, error } = await app.query('logs.all', { project: 'early' });
    expect([status, error.code]).toEqual([503, 'unavailable']);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    expect(app.events.some(({ type }) => type === 'store_unavailable')).toBe(true);
    await one.set('none');
    await expect.poll(health, { timeout: 20_000 }).toBe(200);
    await expect.poll(() => idsOf('early'), { timeout: 20_000 }).toEqual(['a', 'b']);
    expect(app.events.some(({ type }) => type === 'store_available')).toBe(true);
  });

  test('while it serves: what is cached goes on, the rest is 503, the spool drains, every record once', async () => {
    await start([one], 2 ** 20);
    await app.append('edge', [edgeRecord({ at: AT, project: 'kept' })]);
    const counted = { project: 'kept', interval: 'daily' };
    expect((await app.query('usage.api-counts', counted)).status).toBe(200);
    await one.set('refused');
    expect((await send('kept', ['c', 'd'])).status).toBe(200);
    const cached = await app.query('usage.api-counts', counted);
    expect([cached.status, cached.headers.get('cache-status')]).toEqual([
      200,
      expect.stringContaining('hit'),
    ]);
    expect(await idsOf('kept')).toBe(503);
    expect(await health()).toBe(503);
    await one.set('none');
    await expect.poll(() => idsOf('kept'), { timeout: 20_000 }).toHaveLength(3);
    await expect.poll(health, { timeout: 20_000 }).toBe(200);
  });

  test('for longer than the intake may hold: 429, and nothing that was acknowledged is lost', async () => {
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
    await expect.poll(() => idsOf('bounded'), { timeout: 20_000 }).toHaveLength(acknowledged);
  });
});

test('records that come after the spool was damaged are kept, as is the block that waited meanwhile', async () => {
  await one.set('refused');
  await start([one]);
  expect((await send('damaged', ['a', 'b', 'c'])).status).toBe(200);
  await expect.poll(() => existsSync(join(dataDirectory, 'clickhouse', 'edge.block'))).toBe(true);
  await app.close();
  writeFileSync(join(dataDirectory, 'spool', '000000000001.spool'), 'no block\n');
  await one.set('none');
  await start([one]);
  expect((await send('damaged', ['d', 'e'])).status).toBe(200);
  await expect.poll(() => idsOf('damaged'), { timeout: 20_000 }).toEqual(['a', 'b', 'c', 'd', 'e']);
});

test('health tells of a ClickHouse that goes and comes back while nobody asks', async () => {
  await start([one]);
  await one.set('refused');
  await expect.poll(health, { timeout: 10_000 }).toBe(503);
  await one.set('none');
  await expect.poll(health, { timeout: 10_000 }).toBe(200);
});

test('what ClickHouse refuses while it serves is 503 to callers, and told to the operator', async () => {
  await start([one]);
  await ask(address, 'rename table edge_logs to edge_logs_away');
  try {
    const { status, text, headers } = await app.query('logs.all', { project: 'p' });
    expect([status, text]).toEqual([503, expect.stringContaining('the store is out of reach')]);
    const told = app.events.filter(event => event.type === 'store_query_failed');
    expect(told).toMatchObject([{ id: headers.get('dendro-request-id') }]);
    expect(String(told[0]?.error)).toContain('edge_logs');
  } finally {
    await ask(address, 'rename table edge_logs_away to edge_logs');
  }
  expect(await idsOf('p')).toEqual([]);
});

describe('of two hosts', () => {
  test.each(['refused', 'reset', 'answer truncated', 'silent', 'disk full'] as const)(
    'one fails (%s): queries and records go to the other',
    async fault => {
      await start([one, two]);
      await one.set(fault);
      const project = `host ${fault}`;
      for (let round = 0; round < 3; round++) {
        expect((await send(project, [`r${round}`])).status).toBe(200);
        expect((await app.query('logs.all', { project })).status).toBe(200);
      }
      await expect.poll(() => idsOf(project), { timeout: 20_000 }).toEqual(['r0', 'r1', 'r2']);
      expect(await health()).toBe(200);
      // The one that failed is used again when it is back.
      await one.set('none');
      await new Promise(resolve => setTimeout(resolve, 3_000));
      await two.set('refused');
      await expect.poll(() => idsOf(project), { timeout: 20_000 }).toEqual(['r0', 'r1', 'r2']);
    },
  );

  test('both fail: 503, and both are used again when they are back', async () => {
    await start([one, two]);
    await Promise.all([one.set('refused'), two.set('refused')]);
    expect(await idsOf('nobody')).toBe(503);
    await Promise.all([one.set('none'), two.set('none')]);
    await expect.poll(() => idsOf('nobody'), { timeout: 20_000 }).toEqual([]);
  });
});

test('two services in front of one ClickHouse: both see what either takes in, once', async () => {
  await start([one]);
  const first = app;
  const firstFolder = dataDirectory;
  dataDirectory = makeDataFolder();
  try {
    await start([two]);
    // The same numbers in both spools, and the same bytes: still two records.
    for (const service of [first, app])
      expect((await send('shared', ['same'], 'm', service)).status).toBe(200);
    for (const service of [first, app])
      await expect.poll(() => idsOf('shared', service), { timeout: 20_000 }).toEqual(['same', 'same']);
  } finally {
    await first.close();
    removeDataFolder(firstFolder);
  }
});

test('a table that is gone holds up the records of its kind alone, until it is back', async () => {
  await start([one]);
  const store = (id: string, kind: string) =>
    sendLogs(
      app.internalUrl,
      { project: 'kinds', id, event_message: 'm' },
      { query: `?source_name=${kind}` },
    );
  await ask(address, 'rename table auth_logs to auth_logs_away');
  expect((await store('a', 'auth')).status).toBe(200);
  await expect.poll(() => app.events.some(({ type }) => type === 'apply_failed')).toBe(true);
  for (const id of ['b', 'c']) expect((await store(id, 'edge')).status).toBe(200);
  const idsIn = async (kind: string) =>
    (await ask(address, `select id from ${kind}_logs where project = 'kinds' order by id`)).flat();
  await expect.poll(() => idsIn('edge')).toEqual(['b', 'c']);
  await ask(address, 'rename table auth_logs_away to auth_logs');
  await expect.poll(() => idsIn('auth')).toEqual(['a']);
  expect(await idsIn('edge')).toEqual(['b', 'c']);
});
