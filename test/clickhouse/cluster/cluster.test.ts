import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensurePrograms } from '../../../scripts/debian.mjs';
import type { ClickHouseUrl } from '../../../src/store/clickhouse-url.ts';
import { applyClickHouseSchema, openStore } from '../../../src/store/open-store.ts';
import { systemTimer } from '../../../src/system/timer.ts';
import { API_KEY, NOW, startTestApp, type TestApp, testStoreOptions } from '../../support/app.ts';
import { makeDataFolder, removeDataFolder, savedQuery } from '../../support/store.ts';
import { ask } from '../ask.ts';
import { CLUSTER, Cluster } from './cluster.ts';
import { openOldDialect } from './old-dialect.ts';

// Two shards of two replicas: our schema, our endpoints' SQL, written to and asked through the service while servers are
// killed. The servers are of 2018; what that proves and what it does not stands in docs/reference/clickhouse.md.

const AT = '2026-11-14T12:34:00Z';
/** sipHash64 puts some of these on either shard. */
const PROJECTS = Array.from({ length: 8 }, (_, i) => `project-${i}`);

let cluster: Cluster;
let proxies: Awaited<ReturnType<typeof openOldDialect>>[];
let address: ClickHouseUrl;
let dataDirectory: string | undefined;
let app: TestApp;
const sent = new Map<string, string[]>();

beforeAll(async () => {
  const missing = ensurePrograms({
    'clickhouse-server': ['clickhouse-server', 'zookeeper'],
    java: ['zookeeper'],
  });
  if (missing.length > 0)
    throw new Error(
      `THE CLUSTER IS NOT TESTED: ${missing.join(', ')} cannot be installed here; on Debian, as root: apt-get install clickhouse-server zookeeper`,
    );
  cluster = await Cluster.start();
  proxies = await Promise.all(cluster.ports.map(openOldDialect));
  const user = { user: 'default', password: '' };
  address = {
    urls: proxies.map(({ port }) => `http://127.0.0.1:${port}`),
    database: 'dendro',
    reader: user,
    writer: user,
    cluster: CLUSTER,
  };
  await applyClickHouseSchema(address, 90);
  dataDirectory = makeDataFolder();
  const store = { ...testStoreOptions(dataDirectory), clickhouse: address, queryTimeoutSeconds: 10 };
  app = await startTestApp({ store, storeName: 'clickhouse', cacheBytes: 2 ** 20 }, systemTimer);
  app.setNow(NOW);
});
afterAll(async () => {
  await app?.close();
  for (const proxy of proxies ?? []) await proxy.close();
  await cluster?.stop();
  if (dataDirectory !== undefined) removeDataFolder(dataDirectory);
});

/** Acknowledged, so it has to be there some day, once. */
const send = async (round: string) => {
  const records = PROJECTS.flatMap(project =>
    [0, 1, 2].map(i => ({ id: `${round}-${project}-${i}`, project, timestamp: AT, event_message: 'm' })),
  );
  const { status } = await fetch(`${app.internalUrl}/api/logs?source_name=edge`, {
    method: 'POST',
    headers: { 'X-API-KEY': API_KEY, 'Content-Type': 'application/json' },
    body: JSON.stringify(records),
  });
  expect(status).toBe(200);
  for (const { project, id } of records) sent.set(project, [...(sent.get(project) ?? []), id]);
};
const idsOf = async (project: string) => {
  const { status, rows } = await app.query('logs.all', { project });
  return status === 200 ? rows.map(row => String(row['id'])).sort() : status;
};
const everything = async () =>
  Object.fromEntries(await Promise.all(PROJECTS.map(async p => [p, await idsOf(p)])));
const allSent = () =>
  Object.fromEntries(PROJECTS.map(project => [project, [...(sent.get(project) ?? [])].sort()]));
const untilAllIsSeen = () => expect.poll(everything, { timeout: 60_000, interval: 500 }).toEqual(allSent());
const nodeAt = (index: number): ClickHouseUrl => ({ ...address, urls: [address.urls[index] ?? ''] });
const countAt = async (index: number) =>
  (await ask(nodeAt(index), 'select count() from edge_logs_local'))[0]?.[0];

describe('a cluster of two shards and two replicas', () => {
  test('the schema is there on every server, and applying it again changes nothing', async () => {
    expect(await applyClickHouseSchema(address, 90).catch(String)).toEqual([]);
    for (const index of [0, 1, 2, 3])
      expect(await ask(nodeAt(index), "select count() from system.tables where database = 'dendro'")).toEqual(
        [[19]],
      );
  });

  test('records spread over the shards by project, and both replicas of a shard have the same', async () => {
    await send('first');
    await untilAllIsSeen();
    await expect.poll(async () => (await countAt(0)) === (await countAt(1))).toBe(true);
    await expect.poll(async () => (await countAt(2)) === (await countAt(3))).toBe(true);
    const [one, two] = [Number(await countAt(0)), Number(await countAt(2))];
    expect(one + two).toBe(24);
    expect(Math.min(one, two)).toBeGreaterThan(0);
  });

  describe('a query that nobody waits for any more is ended in the server', () => {
    const endless = savedQuery('select sum(sipHash64(number)) from numbers(100000000000000)', ['number']);
    const running = async () => {
      const counts = [0, 1, 2, 3].map(index =>
        ask(nodeAt(index), "select count() from system.processes where query_id like 'dendro-%'"),
      );
      return (await Promise.all(counts)).flat(2).reduce((sum: number, count) => sum + Number(count), 0);
    };
    const askFive = async (queryTimeoutSeconds: number) => {
      const folder = makeDataFolder();
      const options = { ...testStoreOptions(folder), clickhouse: address, queryTimeoutSeconds };
      const store = await openStore({ ...options, queryConcurrency: 5 });
      const leaving = new AbortController();
      const asked = Array.from({ length: 5 }, () =>
        store.query(endless, {}, { signal: leaving.signal }).catch(error => String(error.message)),
      );
      await expect.poll(running, { timeout: 10_000 }).toBe(5);
      return {
        asked: Promise.all(asked),
        leave: () => leaving.abort(new Error('left')),
        async close() {
          await store.close();
          removeDataFolder(folder);
        },
      };
    };

    test('when its callers leave', async () => {
      const five = await askFive(120);
      five.leave();
      expect(await five.asked).toEqual(Array(5).fill('left'));
      await expect.poll(running, { timeout: 5_000 }).toBe(0);
      await five.close();
    });

    test('at its time limit', async () => {
      const five = await askFive(3);
      for (const message of await five.asked) expect(message).toMatch(/^the query exceeded its limit of 3 s/);
      await expect.poll(running, { timeout: 5_000 }).toBe(0);
      await five.close();
    });

    test('when the service stops', async () => {
      const five = await askFive(120);
      await five.close();
      expect(await five.asked).toEqual(Array(5).fill('the store is closed'));
      await expect.poll(running, { timeout: 5_000 }).toBe(0);
    });
  });

  test('one replica is killed: answers and records go on', async () => {
    await cluster.kill(1);
    await send('replica-lost');
    await untilAllIsSeen();
  });

  test('the other replica of that shard is killed, too: an honest error or a cached answer, never a part', async () => {
    const counted = { project: 'project-', interval: 'daily' };
    const before = await app.query('usage.api-counts', counted);
    expect(before.status).toBe(200);
    await cluster.kill(0);
    await send('shard-lost');
    for (let round = 0; round < 5; round++)
      for (const [project, ids] of Object.entries(await everything()))
        if (ids !== 503) expect(ids).toEqual(expect.arrayContaining(allSent()[project]?.slice(0, 6) ?? []));
    expect(Object.values(await everything())).toContain(503);
    expect((await app.query('usage.api-counts', counted)).text).toBe(before.text);
    expect((await app.query('usage.api-counts', { ...counted, interval: 'hourly' })).status).toBe(503);
    await send('shard-still-lost');
  });

  test('the shard comes back: the spool drains, and every record is there once', async () => {
    await Promise.all([cluster.start(0), cluster.start(1)]);
    await untilAllIsSeen();
    for (const pair of [[0, 1] as const, [2, 3] as const])
      await expect
        .poll(async () => (await countAt(pair[0])) === (await countAt(pair[1])), { timeout: 30_000 })
        .toBe(true);
  });

  test('every endpoint answers, with the SQL that stands in its folder', async () => {
    const [row] = (
      await app.query('usage.api-counts', { project: 'project-[0-9]$|project', interval: 'daily' })
    ).rows;
    expect(row).toMatchObject({ total_rest_requests: 0 });
    const { status } = await app.query('functions.invocation-stats', {
      project: 'project-1',
      interval: '5min',
    });
    expect(status).toBe(200);
  });
});
