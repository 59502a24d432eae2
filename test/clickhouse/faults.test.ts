import { mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import type { SpooledLines, Store } from '../../src/store/store.ts';
import { testStoreOptions } from '../support/app.ts';
import { makeDatabase } from '../support/clickhouse.ts';
import { record } from '../support/record.ts';
import { makeDataFolder, QUICK, removeDataFolder, savedQuery } from '../support/store.ts';
import { ask } from './ask.ts';
import { type Fault, FaultyProxy } from './faulty-proxy.ts';

const AT = '2026-11-14T12:34:56.789012Z';
const FAULTS: Fault[] = [
  'refused',
  'reset',
  'silent',
  'stalling',
  'answer lost',
  'answer truncated',
  'disk full',
];
/** Is under way for some tenths of a second. */
const LENGTHY = savedQuery('select countIf(cityHash64(number) >= 0) from numbers(50000000)', ['integer']);
/** Nobody says that anything is wrong: the time limit does. */
const MUTE: Fault[] = ['silent', 'stalling'];

let address: ClickHouseUrl;
let proxy: FaultyProxy;
let dataDirectory: string;
let options: StoreOptions;
let store: Store;

beforeAll(async () => {
  address = await makeDatabase();
});
beforeEach(async () => {
  proxy = await FaultyProxy.open(address);
  dataDirectory = makeDataFolder();
  options = {
    ...testStoreOptions(dataDirectory),
    clickhouse: { ...address, urls: [proxy.url] },
    queryTimeoutSeconds: 2,
  };
  store = await openStore(options);
});
afterEach(async () => {
  await store.close();
  await proxy.close();
  removeDataFolder(dataDirectory);
});
afterAll(() => ask(address, `drop database ${address.database}`));

const spooled = (project: string, first: number, count: number): SpooledLines => ({
  ...toLogLines(
    'auth',
    Array.from({ length: count }, (_, i) => record({ id: `n${first + i}`, at: AT, project })),
  ),
  firstSequence: first,
});
/** How many records there are, and how many of them differ: asked past the proxy. */
const counts = async (project: string) =>
  (await ask(address, `select count(), uniqExact(id) from auth_logs where project = '${project}'`))[0];
const expectNoPassword = (text: string | undefined) => {
  for (const secret of ['a-wrong-one', address.writer.password].filter(password => password !== ''))
    expect(text).not.toContain(secret);
};
const reopen = async () => {
  await store.close();
  store = await openStore(options);
};

describe.each(FAULTS)('where the network or the server fails: %s', fault => {
  test('a query is a clear error within its time limit, and answered when that is over', async () => {
    await proxy.set(fault);
    const error = await store.query(QUICK, {}).catch(thrown => thrown);
    expect(error.code).toBe(MUTE.includes(fault) ? 'query_timeout' : 'unavailable');
    expectNoPassword(`${error.message}${error.cause?.message}`);
    await proxy.set('none');
    await expect.poll(() => store.query(QUICK, {}).then(({ rows }) => rows, String)).toEqual([[42]]);
  });

  test('records are folded once, however often it was tried', async () => {
    const project = `folded ${fault}`;
    await store.apply(spooled(project, 0, 5));
    await proxy.set(fault);
    for (let attempt = 0; attempt < 2; attempt++)
      await expect(store.apply(spooled(project, 0, 12))).rejects.toThrow(/^ClickHouse: records could not be/);
    expect(store.flushedUpTo('auth')).toBe(5);
    await proxy.set('none');
    await store.apply(spooled(project, 0, 15)); // more has come meanwhile: the block that was tried stays as it was
    expect(await counts(project)).toEqual([15, 15]);
    expect(store.flushedUpTo('auth')).toBe(15);
  });

  test('records are folded once by the next process, too', async () => {
    const project = `restarted ${fault}`;
    await proxy.set(fault);
    await expect(store.apply(spooled(project, 0, 12))).rejects.toThrow();
    await proxy.set('none');
    await reopen();
    expect(store.flushedUpTo('auth')).toBe(0);
    await store.apply(spooled(project, 0, 7)); // the spool is read in other pieces than before
    await store.apply(spooled(project, 7, 13));
    expect(await counts(project)).toEqual([20, 20]);
  });
});

test.each<Fault>(['late', 'dripping'])(
  'an answer that is %s: a query ends at its time limit, records are kept, once',
  async fault => {
    await proxy.set(fault);
    const wide = savedQuery("select 'wide', randomPrintableASCII(500)", ['text', 'text']);
    const askedAt = performance.now();
    await expect(store.query(wide, {})).rejects.toMatchObject({ code: 'query_timeout' });
    expect(performance.now() - askedAt).toBeLessThan(4_000);
    const fold = (count: number) => store.apply(spooled(fault, 0, count)).then(() => 'kept', String);
    for (const count of [12, 15]) await expect.poll(() => fold(count), { timeout: 30_000 }).toBe('kept');
    expect(await counts(fault)).toEqual([15, 15]);
    expect(store.flushedUpTo('auth')).toBe(15);
  },
);

test('one odd answer, as of a proxy, is an error of one query: others go on, and the host stays in use', async () => {
  options = { ...options, queryTimeoutSeconds: 60 };
  await reopen();
  await proxy.set('odd answer');
  const others = [LENGTHY, LENGTHY].map(query => store.query(query, {}));
  const odd = store.query(savedQuery("select 'oddly'", ['text']), {});
  await expect(odd).rejects.toMatchObject({ code: 'unavailable' });
  expect(store.isReachable?.()).toBe(true);
  for (const { rows } of await Promise.all(others)) expect(rows).toEqual([[50_000_000]]);
});

test.each([
  [160, 'query_timeout', 'it would take too long'],
  [201, 'unavailable', 'a quota is used up'],
  [198, 'unavailable', 'a name is not found'],
  [394, 'unavailable', 'the query was killed'],
  [1000, 'unavailable', 'its network fails'],
  [76, 'unavailable', 'a file cannot be opened'],
])('what ClickHouse answers by error %i is %s to callers: %s', async (number, code) => {
  await proxy.set(`error ${number}`);
  await expect(store.query(QUICK, {})).rejects.toMatchObject({ code });
});

describe('what the operator has to mend is told in a sentence, without the password', () => {
  const wrong = { user: 'nobody', password: 'a-wrong-one' };

  // Rights that are missing: rights.test.ts.
  test.each([
    ['a wrong password', { reader: wrong, writer: wrong }, /user or the password is wrong/],
    ['a wrong password of the one who inserts', { writer: wrong }, /into.*user or the password is wrong/],
    ['a wrong database', { database: 'no_such_database' }, /there is no such database/],
    ['a database without tables', { database: 'default' }, /`dendro schema clickhouse --apply`/],
  ])('%s', async (_, change, fault) => {
    const folder = makeDataFolder();
    const misled = await openStore({ ...testStoreOptions(folder), clickhouse: { ...address, ...change } });
    try {
      const missing = await misled.preflight?.();
      expect(missing).toMatch(fault);
      expectNoPassword(missing);
      const error = await misled.apply(spooled('misled', 0, 1)).catch(thrown => thrown);
      expect(error.message).toMatch(/^ClickHouse: records could not be inserted: /);
      expectNoPassword(error.message);
      expect(misled.flushedUpTo('auth')).toBe(0);
    } finally {
      await misled.close();
      removeDataFolder(folder);
    }
  });

  test('a data directory that another store holds', async () => {
    await expect(openStore(options)).rejects.toThrow(/is in use by another process/);
  });
});

test('what an append that was killed left behind goes at the next opening, and what waits in frozen blocks stays', async () => {
  await proxy.set('refused');
  await expect(store.apply(spooled('waiting', 0, 3))).rejects.toThrow();
  const folder = join(dataDirectory, 'clickhouse');
  mkdirSync(join(folder, 'append-killed'));
  writeFileSync(join(folder, 'append-killed', '0'), 'a staged block');
  await reopen();
  expect(readdirSync(folder).sort()).toEqual(['auth.block', 'progress.json']);
});
