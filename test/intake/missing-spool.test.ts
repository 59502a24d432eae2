import { existsSync, readdirSync, rmSync, truncateSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { readBack } from '../../src/backup/read-back.ts';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { Applier, replaySpool } from '../../src/intake/applier.ts';
import { inspectFiles } from '../../src/intake/inspect-files.ts';
import { Spool } from '../../src/intake/spool.ts';
import type { Event } from '../../src/observe/event.ts';
import { inspectStore, openClickHouseOutbox, openStore } from '../../src/store/open-store.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { idsOf, sendLogs } from '../support/logs.ts';
import { record } from '../support/record.ts';

const directory = useDirectory();
let app: TestApp;
afterEach(() => app.close());

const start = async () => {
  app = await startTestApp({ store: testStoreOptions(directory) });
};
const send = (...ids: string[]) =>
  sendLogs(
    app.internalUrl,
    ids.map(id => ({ project: 'p', id, message: 'm' })),
  );
const spoolDirectory = join(directory, 'spool');

/** The damage that a deep check of the data directory finds. */
const check = async () => {
  const { durableUpTo } = await inspectStore('duckdb', { dataDirectory: directory });
  const { spool } = await inspectFiles(directory, () => {}, durableUpTo);
  return spool.damages.map(({ file, problem }) => `${file}: ${problem}`);
};

const REPORT = { type: 'spool_incomplete', directory: spoolDirectory, kinds: ['edge'], lost: {} };
const SEGMENT = join(spoolDirectory, '000000000001.spool');
test.each<[state: string, damage: () => void, others?: string[]]>([
  ['without a directory', () => rmSync(spoolDirectory, { recursive: true })],
  ['without files', () => rmSync(SEGMENT)],
  [
    'with an empty file',
    () => truncateSync(SEGMENT),
    ['spool/000000000001.spool: blocks are missing: the file is shorter than at the last clean stop'],
  ],
  [
    'with an empty file, as after a crash',
    () => {
      rmSync(join(spoolDirectory, 'clean-stop.json'));
      truncateSync(SEGMENT);
    },
  ],
])(
  'a deep check and a start report a spool %s, although the store has its records, and new records are stored',
  async (_, damage, others: string[] = []) => {
    await start();
    await send('a', 'b', 'c');
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(3);
    await app.store.flush(LOG_KINDS);
    await app.close();
    damage();
    expect(await check()).toEqual([...others, 'spool/: whole files or the ends of files are missing']);
    await start();
    expect(app.events).toContainEqual(REPORT);
    await send('d', 'e');
    await expect.poll(() => idsOf(app, 'p')).toEqual(['a', 'b', 'c', 'd', 'e']);
    await app.close();
    await start();
    expect(await idsOf(app, 'p')).toEqual(['a', 'b', 'c', 'd', 'e']);
    expect(app.events.filter(({ type }) => type === 'spool_incomplete')).toEqual([]);
  },
);

test('a deep check reports the records of a segment that is missing between others', async () => {
  await start(); // creates the data directory
  await app.close();
  const spool = await Spool.open({ directory: spoolDirectory, durableUpTo: () => 0, observe: () => {} });
  for (const id of ['a', 'b', 'c']) {
    await spool.append([toLogLines('auth', [record({ id, at: '2026-11-14T12:00:00Z', message: 'm' })])]);
    await spool.rotate();
  }
  await spool.close();
  expect(await check()).toEqual([]);
  rmSync(join(spoolDirectory, '000000000002.spool'));
  expect(await check()).toEqual(['spool/: 1 records of kind auth are missing']);
});

test('a command that reads the data directory reports a missing spool and does not create one', async () => {
  await start();
  await send('a');
  await expect.poll(() => idsOf(app, 'p')).toHaveLength(1);
  await app.store.flush(LOG_KINDS);
  await app.close();
  rmSync(spoolDirectory, { recursive: true });
  const store = await openStore(testStoreOptions(directory));
  const events: Event[] = [];
  await replaySpool(directory, store, event => events.push(event));
  await store.close();
  expect(events).toEqual([REPORT]);
  expect(existsSync(spoolDirectory)).toBe(false);
});

test('a backup and a deep check accept a spool that has deleted all segments with records', async () => {
  await start(); // creates the data directory
  await app.close();
  const store = await openStore(testStoreOptions(directory));
  const durableUpTo = (kind: LogKind) => store.durableUpTo(kind);
  const spool = await Spool.open({ directory: spoolDirectory, durableUpTo, observe: () => {} });
  await spool.append([toLogLines('auth', [record({ id: 'a', at: '2026-11-14T12:00:00Z', message: 'm' })])]);
  await spool.rotate();
  await new Applier({ spool, store, timer: systemTimer, observe: () => {} }).applySpooled();
  await store.flush(LOG_KINDS);
  await spool.deleteFlushed(durableUpTo);
  await spool.close();
  await store.close();
  expect(readdirSync(spoolDirectory).filter(name => name.endsWith('.spool'))).toEqual(['000000000002.spool']);
  expect(await readBack(directory, 'duckdb')).toEqual({ auth: { stored: 1, spooled: 0 } });
  expect(await check()).toEqual([]);
});

describe('a data directory without a manifest and parts', () => {
  const deleteStore = () => {
    for (const name of ['manifest.json', 'manifest.copy.json', 'parts', 'dendro.duckdb'])
      rmSync(join(directory, name), { recursive: true, force: true });
  };
  const storeAndDelete = async () => {
    await start();
    await send('a');
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(1);
    await app.store.flush(LOG_KINDS);
    await app.close();
    deleteStore();
  };
  const reports = () => app.events.filter(({ type }) => type === 'store_missing').length;

  test('a backup and a start that creates the store again report it, and other starts do not', async () => {
    await start();
    expect(reports()).toBe(0);
    await app.close();
    await storeAndDelete();
    await expect(readBack(directory, 'duckdb')).rejects.toThrow(
      'manifest.json: it does not exist, although a server has used this data directory',
    );
    await start();
    expect(reports()).toBe(1);
    await app.close();
    await start();
    expect(reports()).toBe(0);
  });

  test('it is not reported if a server has sent records of the directory to ClickHouse', async () => {
    await storeAndDelete();
    const outbox = await openClickHouseOutbox(directory); // as an unfinished `dendro migrate` leaves it
    await start();
    expect(reports()).toBe(1);
    await app.close();
    deleteStore();
    await outbox.skipTo(() => 1);
    await start();
    expect(reports()).toBe(0);
  });
});
