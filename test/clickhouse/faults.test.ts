import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import { loadEndpoints } from '../../src/endpoint/catalog.ts';
import { LiveCatalog } from '../../src/endpoint/live-catalog.ts';
import type { Event } from '../../src/observe/event.ts';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import type { SpooledLines, Store } from '../../src/store/store.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { testStoreOptions } from '../support/app.ts';
import { createDatabase } from '../support/clickhouse.ts';
import { BUILT_IN } from '../support/custom-endpoints.ts';
import { record } from '../support/record.ts';
import { createDataDirectory, QUICK, removeDataDirectory, savedQuery } from '../support/store.ts';
import { ERROR_PAGE_TRIGGER, type Fault, FaultyProxy } from './faulty-proxy.ts';
import { runSql } from './run-sql.ts';

const AT = '2026-11-14T12:34:56.789012Z';
const FAULTS: Fault[] = [
  'refused',
  'reset',
  'silent',
  'stalling',
  'response lost',
  'response truncated',
  'disk full',
];
/** Takes a few tenths of a second. */
const SLOW = savedQuery('select countIf(cityHash64(number) >= 0) from numbers(50000000)', ['integer']);
/** Only the time limit detects these faults. */
const SILENT_FAULTS: Fault[] = ['silent', 'stalling'];

let clickhouse: ClickHouseUrl;
let proxy: FaultyProxy;
let dataDirectory: string;
let options: StoreOptions;
let store: Store;

beforeAll(async () => {
  clickhouse = await createDatabase();
});
beforeEach(async () => {
  proxy = await FaultyProxy.open(clickhouse);
  dataDirectory = createDataDirectory();
  options = {
    ...testStoreOptions(dataDirectory),
    clickhouse: { ...clickhouse, urls: [proxy.url] },
    queryTimeoutSeconds: 20,
  };
  store = await openStore(options);
});
afterEach(async () => {
  await store.close();
  await proxy.close();
  removeDataDirectory(dataDirectory);
});
afterAll(() => runSql(clickhouse, `drop database ${clickhouse.database}`));

const spooledLines = (project: string, first: number, count: number): SpooledLines => ({
  ...toLogLines(
    'auth',
    Array.from({ length: count }, (_, i) => record({ id: `n${first + i}`, at: AT, project })),
  ),
  firstSequence: first,
});
/** The number of rows, and of different ids, read without the proxy. */
const countRows = async (project: string) =>
  (await runSql(clickhouse, `select count(), uniqExact(id) from auth_logs where project = '${project}'`))[0];
const expectNoPassword = (text: string | undefined) => {
  for (const secret of ['a-wrong-one', clickhouse.writer.password].filter(password => password !== ''))
    expect(text).not.toContain(secret);
};
const reopen = async () => {
  await store.close();
  store = await openStore(options);
};
const limitQueries = async (seconds: number) => {
  options = { ...options, queryTimeoutSeconds: seconds };
  await reopen();
};

describe.each(FAULTS)('with the fault %s of the network or the server', fault => {
  beforeEach(async () => {
    if (SILENT_FAULTS.includes(fault)) await limitQueries(2);
  });

  test('a query fails with the right code within its time limit, and succeeds after the fault', async () => {
    await proxy.set(fault);
    const error = await store.query(QUICK, {}).catch(thrown => thrown);
    expect(error.code).toBe(SILENT_FAULTS.includes(fault) ? 'query_timeout' : 'unavailable');
    expectNoPassword(`${error.message}${error.cause?.message}`);
    await proxy.set('none');
    await expect.poll(() => store.query(QUICK, {}).then(({ rows }) => rows, String)).toEqual([[42]]);
  });

  test('records are stored once after several failed attempts to apply them', async () => {
    const project = `applied ${fault}`;
    await store.apply(spooledLines(project, 0, 5));
    await proxy.set(fault);
    for (let attempt = 0; attempt < 2; attempt++)
      await expect(store.apply(spooledLines(project, 0, 12))).rejects.toThrow(
        /^cannot insert records into ClickHouse: /,
      );
    expect(store.flushedUpTo('auth')).toBe(5);
    await proxy.set('none');
    await store.apply(spooledLines(project, 0, 15)); // more records arrived meanwhile; the pending block does not change
    expect(await countRows(project)).toEqual([15, 15]);
    expect(store.flushedUpTo('auth')).toBe(15);
  });

  test('records are stored once if the next process applies them again', async () => {
    const project = `restarted ${fault}`;
    await proxy.set(fault);
    await expect(store.apply(spooledLines(project, 0, 12))).rejects.toThrow();
    await proxy.set('none');
    await reopen();
    expect(store.flushedUpTo('auth')).toBe(0);
    await store.apply(spooledLines(project, 0, 7)); // batches of other sizes than before the restart
    await store.apply(spooledLines(project, 7, 13));
    expect(await countRows(project)).toEqual([20, 20]);
  });
});

test.each<Fault>(['late', 'dripping'])(
  'with a response that is %s, a query fails at its time limit and records are stored once',
  async fault => {
    await limitQueries(2);
    await proxy.set(fault);
    const wide = savedQuery("select 'wide', randomPrintableASCII(500)", ['text', 'text']);
    const requestedAt = performance.now();
    await expect(store.query(wide, {})).rejects.toMatchObject({ code: 'query_timeout' });
    expect(performance.now() - requestedAt).toBeLessThan(20_000);
    const apply = (count: number) => store.apply(spooledLines(fault, 0, count)).then(() => 'stored', String);
    for (const count of [12, 15]) await expect.poll(() => apply(count), { timeout: 30_000 }).toBe('stored');
    expect(await countRows(fault)).toEqual([15, 15]);
    expect(store.flushedUpTo('auth')).toBe(15);
  },
);

test('an error page of a proxy fails one query only, and the host stays in use', async () => {
  await limitQueries(60);
  await proxy.set('error page');
  const others = [SLOW, SLOW].map(query => store.query(query, {}));
  const failing = store.query(savedQuery(`select '${ERROR_PAGE_TRIGGER}'`, ['text']), {});
  await expect(failing).rejects.toMatchObject({ code: 'unavailable' });
  expect(store.readStatistics().isReachable).toBe(true);
  for (const { rows } of await Promise.all(others)) expect(rows).toEqual([[50_000_000]]);
});

test.each<[problem: string, fault: Fault, trigger: string | undefined]>([
  ['only the insert check fails', 'error page', 'JSONEachRow'],
  ['queries exceed their time limit', 'silent', undefined],
])('a start while %s succeeds, and the preflight is retried until it passes', async (_, fault, trigger) => {
  if (fault === 'silent') await limitQueries(10);
  await proxy.set(fault, trigger);
  const events: Event['type'][] = [];
  const catalog = new LiveCatalog({
    load: () => loadEndpoints({ builtIn: BUILT_IN, custom: undefined }, 'clickhouse'),
    watched: undefined,
    timer: systemTimer,
    observe: ({ type }) => void events.push(type),
  });
  try {
    await catalog.check(store);
    expect([catalog.hasPassed, events]).toEqual([false, ['store_unavailable']]);
    catalog.start({ store, onReload() {} });
    await proxy.set('none');
    await expect.poll(() => catalog.hasPassed).toBe(true);
    expect(events.at(-1)).toBe('store_available');
  } finally {
    await catalog.close();
  }
});

test.each([
  [160, 'query_timeout', 'the query is too slow'],
  [201, 'unavailable', 'the quota is exhausted'],
  [198, 'unavailable', 'a host name cannot be resolved'],
  [394, 'unavailable', 'the query was killed'],
  [1000, 'unavailable', 'the network of the server failed'],
  [76, 'unavailable', 'a file cannot be opened'],
])('ClickHouse error %i is reported to callers as %s: %s', async (number, code) => {
  await proxy.set(`error ${number}`);
  await expect(store.query(QUICK, {})).rejects.toMatchObject({ code });
});

describe('a configuration error is reported in one sentence, without the password', () => {
  const wrongUser = { user: 'nobody', password: 'a-wrong-one' };

  // Missing privileges are tested in rights.test.ts.
  test.each([
    ['a wrong password', { reader: wrongUser, writer: wrongUser }, /user or the password is wrong/],
    [
      'a wrong password of the user that inserts',
      { writer: wrongUser },
      /insert into.*user or the password is wrong/,
    ],
    ['a wrong database', { database: 'no_such_database' }, /the database does not exist/],
    ['a database without tables', { database: 'default' }, /`dendro schema clickhouse --apply`/],
  ])('%s', async (_, change, problem) => {
    const directory = createDataDirectory();
    const misconfigured = await openStore({
      ...testStoreOptions(directory),
      clickhouse: { ...clickhouse, ...change },
    });
    try {
      const reported = await misconfigured.preflight?.();
      expect(reported).toMatch(problem);
      expectNoPassword(reported);
      const error = await misconfigured.apply(spooledLines('misconfigured', 0, 1)).catch(thrown => thrown);
      expect(error.message).toMatch(/^cannot insert records into ClickHouse: /);
      expectNoPassword(error.message);
      expect(misconfigured.flushedUpTo('auth')).toBe(0);
    } finally {
      await misconfigured.close();
      removeDataDirectory(directory);
    }
  });
});

test('opening a store removes the staged blocks of a killed append and keeps the blocks of the outbox', async () => {
  await proxy.set('refused');
  await expect(store.apply(spooledLines('waiting', 0, 3))).rejects.toThrow();
  const outboxDirectory = join(dataDirectory, 'clickhouse');
  mkdirSync(join(outboxDirectory, 'append-killed'));
  writeFileSync(join(outboxDirectory, 'append-killed', '0'), 'a staged block');
  await reopen();
  expect(readdirSync(outboxDirectory).sort()).toEqual(['auth.block', 'progress.json']);
});
