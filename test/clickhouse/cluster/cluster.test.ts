import { cpSync } from 'node:fs';
import { basename, join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensurePrograms } from '../../../scripts/debian.mjs';
import type { ClickHouseUrl } from '../../../src/store/clickhouse-url.ts';
import { applyClickHouseSchema, openStore } from '../../../src/store/open-store.ts';
import { systemTimer } from '../../../src/system/timer.ts';
import { API_KEY, NOW, startTestApp, type TestApp, testStoreOptions } from '../../support/app.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../../support/store.ts';
import { runSql } from '../run-sql.ts';
import { CLUSTER, Cluster, ZOOKEEPER_JAR } from './cluster.ts';
import { openOldDialectProxy } from './old-dialect.ts';

// The service with a cluster of two shards and two replicas each, while servers are killed. The servers are of 2018;
// docs/reference/clickhouse.md says what these tests prove.

const AT = '2026-11-14T12:34:00Z';
/** Both shards get some of these. */
const PROJECTS = Array.from({ length: 8 }, (_, i) => `project-${i}`);

let cluster: Cluster;
let proxies: Awaited<ReturnType<typeof openOldDialectProxy>>[];
let clickhouse: ClickHouseUrl;
let dataDirectory: string | undefined;
let app: TestApp;
const sent = new Map<string, string[]>();

beforeAll(async () => {
  const missing = ensurePrograms({
    'clickhouse-server': 'clickhouse-server',
    java: 'zookeeper',
    [ZOOKEEPER_JAR]: 'zookeeper', // other packages also install java
  });
  if (missing.length > 0)
    throw new Error(
      `THE CLUSTER IS NOT TESTED: ${missing.join(', ')} cannot be installed; on Debian, run as root: apt-get install clickhouse-server zookeeper`,
    );
  cluster = await Cluster.start();
  proxies = await Promise.all(cluster.ports.map(openOldDialectProxy));
  const user = { user: 'default', password: '' };
  clickhouse = {
    urls: proxies.map(({ port }) => `http://127.0.0.1:${port}`),
    database: 'dendro',
    reader: user,
    writer: user,
    cluster: CLUSTER,
  };
  await applyClickHouseSchema(clickhouse, 90);
  dataDirectory = createDataDirectory();
  const store = { ...testStoreOptions(dataDirectory), clickhouse, queryTimeoutSeconds: 10 };
  // 18.16 does not have the functions of the explanations.
  const builtIn = join(dataDirectory, 'endpoints');
  cpSync(join(import.meta.dirname, '../../../endpoints'), builtIn, {
    recursive: true,
    filter: source => !basename(source).startsWith('explain.'),
  });
  const endpointFolders = { builtIn, custom: undefined };
  app = await startTestApp(
    { store, storeName: 'clickhouse', cacheBytes: 2 ** 20, endpointFolders },
    systemTimer,
  );
  app.setNow(NOW);
});
afterAll(async () => {
  await app?.close();
  for (const proxy of proxies ?? []) await proxy.close();
  await cluster?.stop();
  if (dataDirectory !== undefined) removeDataDirectory(dataDirectory);
});

/** Sends three records of each project. They are acknowledged, so each must be stored once. */
const sendRecords = async (round: string) => {
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
const readAllIds = async () =>
  Object.fromEntries(await Promise.all(PROJECTS.map(async p => [p, await idsOf(p)])));
const allSentIds = () =>
  Object.fromEntries(PROJECTS.map(project => [project, [...(sent.get(project) ?? [])].sort()]));
const waitUntilAllAreVisible = () =>
  expect.poll(readAllIds, { timeout: 60_000, interval: 500 }).toEqual(allSentIds());
const nodeAt = (index: number): ClickHouseUrl => ({ ...clickhouse, urls: [clickhouse.urls[index] ?? ''] });
const countAt = async (index: number) =>
  (await runSql(nodeAt(index), 'select count() from edge_logs_local'))[0]?.[0];

describe('a cluster of two shards with two replicas each', () => {
  test('every server has the schema, and applying it again changes nothing', async () => {
    expect(await applyClickHouseSchema(clickhouse, 90).catch(String)).toEqual([]);
    for (const index of [0, 1, 2, 3])
      expect(
        await runSql(nodeAt(index), "select count() from system.tables where database = 'dendro'"),
      ).toEqual([[19]]);
  });

  test('records are sharded by project, and both replicas of a shard have the same number', async () => {
    await sendRecords('first');
    await waitUntilAllAreVisible();
    await expect.poll(async () => (await countAt(0)) === (await countAt(1))).toBe(true);
    await expect.poll(async () => (await countAt(2)) === (await countAt(3))).toBe(true);
    const [one, two] = [Number(await countAt(0)), Number(await countAt(2))];
    expect(one + two).toBe(24);
    expect(Math.min(one, two)).toBeGreaterThan(0);
  });

  describe('a query is killed in the server', () => {
    const endless = savedQuery('select sum(sipHash64(number)) from numbers(100000000000000)', ['number']);
    const countRunning = async () => {
      const counts = [0, 1, 2, 3].map(index =>
        runSql(nodeAt(index), "select count() from system.processes where query_id like 'dendro-%'"),
      );
      return (await Promise.all(counts)).flat(2).reduce((sum: number, count) => sum + Number(count), 0);
    };
    const startFiveQueries = async (queryTimeoutSeconds: number) => {
      const directory = createDataDirectory();
      const options = { ...testStoreOptions(directory), clickhouse, queryTimeoutSeconds };
      const store = await openStore({ ...options, queryConcurrency: 5 });
      const caller = new AbortController();
      const errors = Array.from({ length: 5 }, () =>
        store.query(endless, {}, { signal: caller.signal }).catch(error => String(error.message)),
      );
      await expect.poll(countRunning).toBe(5);
      return {
        errors: Promise.all(errors),
        leave: () => caller.abort(new Error('left')),
        async close() {
          await store.close();
          removeDataDirectory(directory);
        },
      };
    };

    test('when its caller leaves', async () => {
      const queries = await startFiveQueries(120);
      queries.leave();
      expect(await queries.errors).toEqual(Array(5).fill('left'));
      await expect.poll(countRunning).toBe(0);
      await queries.close();
    });

    test('at its time limit', async () => {
      const queries = await startFiveQueries(3);
      for (const message of await queries.errors)
        expect(message).toMatch(/^the query exceeded its limit of 3 s/);
      await expect.poll(countRunning).toBe(0);
      await queries.close();
    });

    test('when the store closes', async () => {
      const queries = await startFiveQueries(120);
      await queries.close();
      expect(await queries.errors).toEqual(Array(5).fill('the store is closed'));
      await expect.poll(countRunning).toBe(0);
    });
  });

  test('after one replica is killed, queries and inserts continue', async () => {
    await cluster.kill(1);
    await sendRecords('replica-lost');
    await waitUntilAllAreVisible();
  });

  test('after both replicas of a shard are killed, queries get 503 or a cached result, never an incomplete one', async () => {
    const parameters = { project: 'project-', interval: 'daily' };
    const before = await app.query('usage.api-counts', parameters);
    expect(before.status).toBe(200);
    await cluster.kill(0);
    await sendRecords('shard-lost');
    for (let round = 0; round < 5; round++)
      for (const [project, ids] of Object.entries(await readAllIds()))
        if (ids !== 503)
          expect(ids).toEqual(expect.arrayContaining(allSentIds()[project]?.slice(0, 6) ?? []));
    expect(Object.values(await readAllIds())).toContain(503);
    expect((await app.query('usage.api-counts', parameters)).text).toBe(before.text);
    expect((await app.query('usage.api-counts', { ...parameters, interval: 'hourly' })).status).toBe(503);
    await sendRecords('shard-still-lost');
  });

  test('after the shard is back, the spool is applied and every record is stored once', async () => {
    await Promise.all([cluster.start(0), cluster.start(1)]);
    await waitUntilAllAreVisible();
    for (const pair of [[0, 1] as const, [2, 3] as const])
      await expect
        .poll(async () => (await countAt(pair[0])) === (await countAt(pair[1])), { timeout: 30_000 })
        .toBe(true);
  });

  test('the SQL of every endpoint runs on the cluster', async () => {
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

  test('an erased project is gone from every replica, and the other projects are not', async () => {
    await sendRecords('before-erasure');
    await waitUntilAllAreVisible();
    const erased = 'project-3';
    expect(await app.store.eraseProject({ project: erased })).toBe(sent.get(erased)?.length);
    sent.delete(erased);
    const sql = `select count() from edge_logs_local where project = '${erased}'`;
    const counts = () =>
      Promise.all([0, 1, 2, 3].map(async index => Number((await runSql(nodeAt(index), sql))[0]?.[0])));
    await expect.poll(counts, { timeout: 30_000 }).toEqual([0, 0, 0, 0]); // 18.16 cannot wait for the replicas
    await waitUntilAllAreVisible();
  });
});
