import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { Applier } from '../../src/intake/applier.ts';
import { Spool } from '../../src/intake/spool.ts';
import type { Event } from '../../src/observe/event.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { API_KEY, fetchResponse, NOW, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { idsOf, sendLogs } from '../support/logs.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';
import { record as anyRecord, edgeRecord } from '../support/record.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';

const MIB = 1024 * 1024;

let directory: string;
let app: TestApp;
const start = async (intakeQueueBytes = 256 * MIB) => {
  app = await startTestApp({ store: testStoreOptions(directory), intakeQueueBytes });
};
beforeEach(() => {
  directory = createDataDirectory();
});
afterEach(async () => {
  await app.close();
  removeDataDirectory(directory);
});

const stagingFile = () => join(directory, 'staging', 'apply.lines');
/** The store cannot apply records while a directory has the name of its staging file. */
const breakStore = () => mkdirSync(stagingFile());
const repairStore = () => rmSync(stagingFile(), { recursive: true, force: true });
const send = (body: unknown, kind = 'edge') =>
  sendLogs(app.internalUrl, body, { query: `?source_name=${kind}` });
const record = (id: string, message = 'm') => ({ project: 'p', id, message });
const failures = () => app.events.filter(({ type }) => type === 'apply_failed').length;
const countApplied = (kind: string) =>
  app.events.reduce(
    (sum, event) => sum + (event.type === 'records_applied' && event.kind === kind ? event.count : 0),
    0,
  );

describe('a store that fails to apply records', () => {
  test('the applier retries until it succeeds, and each acknowledged record is stored and counted once', async () => {
    await start();
    await send(record('before'));
    await expect.poll(() => idsOf(app, 'p')).toEqual(['before']);
    breakStore();
    for (let i = 0; i < 5; i++) expect((await send(record(`during-${i}`))).status).toBe(200);
    expect((await send(record('other kind'), 'auth')).status).toBe(200);
    await expect.poll(failures).toBeGreaterThan(2);
    await expect
      .poll(() => app.events.some(event => event.type === 'apply_failed' && event.kind === 'auth'))
      .toBe(true);
    expect(await idsOf(app, 'p')).toEqual(['before']);
    repairStore();
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(6);
    await expect.poll(() => idsOf(app, 'p', 'auth')).toEqual(['other kind']);
    await send(record('zz after'));
    await expect
      .poll(() => idsOf(app, 'p'))
      .toEqual(['before', ...[0, 1, 2, 3, 4].map(i => `during-${i}`), 'zz after']);
    await expect.poll(() => [countApplied('edge'), countApplied('auth')]).toEqual([7, 1]); // reported after they are visible
    const recoveries = () => app.events.filter(event => event.type === 'apply_recovered');
    await expect
      .poll(() =>
        recoveries()
          .map(({ kind }) => kind)
          .sort(),
      )
      .toEqual(['auth', 'edge']);
    expect(recoveries().reduce((sum, { failures }) => sum + failures, 0)).toBe(failures());
  });

  test('a failure that lasts until a restart loses no record', async () => {
    await start();
    breakStore();
    await send([record('a'), record('b')]);
    await expect.poll(failures).toBeGreaterThan(0);
    await app.close();
    await start();
    await send(record('c'));
    await expect.poll(() => idsOf(app, 'p')).toEqual(['a', 'b', 'c']);
  });
});

describe('a store that fails to apply one kind', () => {
  const kindOf = ({ kind }: { readonly kind: LogKind }) => kind;
  /** Every apply of this kind fails until it is repaired. */
  const breakKind = (store: Store, broken: LogKind) => {
    const { apply } = store;
    store.apply = lines =>
      lines.kind === broken ? Promise.reject(new Error('no such table')) : apply(lines);
    return () => {
      store.apply = apply;
    };
  };

  test('the other kinds advance, the failure names its kind, and its records are stored once when it works again', async () => {
    await start();
    const repair = breakKind(app.store, 'auth');
    for (let i = 0; i < 5; i++) {
      expect((await send(record(`auth ${i}`), 'auth')).status).toBe(200);
      expect((await send(record(`edge ${i}`))).status).toBe(200);
      await expect.poll(() => idsOf(app, 'p')).toHaveLength(i + 1);
    }
    await expect.poll(failures).toBeGreaterThan(2);
    expect(new Set(app.events.filter(event => event.type === 'apply_failed').map(kindOf))).toEqual(
      new Set(['auth']),
    );
    expect(await idsOf(app, 'p', 'auth')).toEqual([]);
    repair();
    const allIds = [0, 1, 2, 3, 4].map(i => `auth ${i}`);
    await expect.poll(() => idsOf(app, 'p', 'auth')).toEqual(allIds);
    expect(await idsOf(app, 'p')).toHaveLength(5);
    await expect.poll(() => [countApplied('edge'), countApplied('auth')]).toEqual([5, 5]);
  });

  test('its records get 429 beyond half of the queue, and the records of other kinds are still accepted', async () => {
    await start(MIB);
    const repair = breakKind(app.store, 'auth');
    const batch = (name: string) =>
      Array.from({ length: 150 }, (_, i) => record(`${name}-${i}`, 'x'.repeat(1_000)));
    let stored = 0;
    const sendBoth = async (i: number) => {
      expect((await send(batch(`edge-${i}`))).status).toBe(200);
      await expect.poll(() => countApplied('edge')).toBe(150 * (i + 1));
      const { status, error } = await send(batch(`auth-${i}`), 'auth');
      if (status === 200) stored += 150;
      else expect([status, error.message]).toEqual([429, expect.stringContaining('kind auth')]);
    };
    for (let i = 0; i < 7; i++) await sendBoth(i);
    expect(stored).toBeGreaterThanOrEqual(3 * 150);
    expect(stored).toBeLessThan(7 * 150);
    repair();
    await expect.poll(() => countApplied('auth')).toBe(stored);
    expect(await idsOf(app, 'p', 'auth')).toHaveLength(stored);
    expect((await send(batch('auth-later'), 'auth')).status).toBe(200);
  });

  const createRecord = (kind: LogKind, options: Parameters<typeof edgeRecord>[0]) =>
    kind === 'edge' ? edgeRecord(options) : anyRecord(options);

  test('while its records keep the spool above its size limit, the other kinds are not flushed in every round', async () => {
    await start();
    await app.close();
    const store = await openStore(testStoreOptions(directory));
    const spool = await Spool.open(
      join(directory, 'spool'),
      kind => store.durableUpTo(kind),
      () => {},
    );
    Object.defineProperty(spool, 'diskBytes', { value: 600 * MIB }); // above the limit, without writing as much
    breakKind(store, 'auth');
    const { flush } = store;
    const flushes: (readonly LogKind[])[] = [];
    store.flush = kinds => {
      if (kinds.length > 0) flushes.push(kinds);
      return flush(kinds);
    };
    let applied = 0;
    const timer = new ManualTimer();
    const observe = (event: Event) => {
      if (event.type === 'records_applied') applied += event.count;
    };
    const applier = new Applier({ spool, store, timer, observe });
    await applier.start();
    const append = (kind: LogKind, id: string) => {
      const { count, lines } = toLogLines(kind, [createRecord(kind, { id, at: NOW })]);
      return spool.append(kind, count, lines);
    };
    await append('auth', 'fails');
    for (let i = 0; i < 20; i++) {
      await append('edge', `edge ${i}`);
      await expect
        .poll(
          async () => {
            await timer.advance(250);
            return applied;
          },
          { interval: 5 },
        )
        .toBe(i + 1);
    }
    expect(flushes).toEqual([]);
    await applier.close();
    await spool.close();
    await store.close();
  });

  test('replaying a spool of several batches applies every other kind, and later the failed kind exactly once', async () => {
    await start();
    await app.close();
    const store = await openStore(testStoreOptions(directory));
    const observe = () => {};
    const spool = await Spool.open(join(directory, 'spool'), kind => store.durableUpTo(kind), observe);
    for (let i = 0; i < 12; i++)
      for (const kind of ['edge', 'auth', 'rest'] as const) {
        const { count, lines } = toLogLines(
          kind,
          Array.from({ length: 50 }, (_, j) =>
            createRecord(kind, { id: `${kind} ${i} ${j}`, at: NOW, message: 'x'.repeat(5_000) }),
          ),
        );
        await spool.append(kind, count, lines);
      }
    const applier = new Applier({ spool, store, timer: systemTimer, observe });
    const repair = breakKind(store, 'auth');
    const count = async (kind: LogKind) => {
      const { rows } = await store.query(savedQuery(`select count(*) from ${kind}_logs`, ['integer']), {});
      return rows[0]?.[0];
    };
    const counts = async () => [await count('edge'), await count('auth'), await count('rest')];
    await expect(applier.catchUp()).rejects.toThrow('no such table');
    expect(await counts()).toEqual([600, 0, 600]);
    repair();
    await applier.catchUp();
    expect(await counts()).toEqual([600, 600, 600]);
    expect(spool.unappliedBytes).toBe(0);
    await spool.close();
    await store.close();
  });
});

test('a block that is damaged while the server runs does not stop the records of another kind behind it', async () => {
  await start();
  await app.close();
  const store = await openStore(testStoreOptions(directory));
  const observe = () => {};
  const spool = await Spool.open(join(directory, 'spool'), kind => store.durableUpTo(kind), observe);
  const append = (kind: LogKind) => {
    const { count, lines } = toLogLines(kind, [anyRecord({ id: `id of ${kind}`, at: NOW, project: 'p' })]);
    return spool.append(kind, count, lines);
  };
  for (const kind of ['auth', 'rest'] as const) await append(kind);
  const segment = join(directory, 'spool', '000000000001.spool');
  writeFileSync(segment, readFileSync(segment, 'latin1').replace('id of auth', 'id OF auth'), 'latin1');
  const applier = new Applier({ spool, store, timer: systemTimer, observe });
  await expect(applier.catchUp()).rejects.toThrow('is damaged; restart dendro');
  expect(spool.unappliedKinds).toEqual(['auth']);
  expect(await idsOf({ store }, 'p', 'rest')).toEqual(['id of rest']);
  await spool.close();
  await store.close();
});

describe('a cleanup that fails while no records arrive', () => {
  let store: Store;
  let spool: Spool;
  let applier: Applier;
  let timer: ManualTimer;
  let failedCleanups: number;
  beforeEach(async () => {
    await start();
    await app.close();
    store = await openStore(testStoreOptions(directory));
    const index = { restore: () => {}, requestsOf: () => [] };
    spool = await Spool.open(
      join(directory, 'spool'),
      kind => store.durableUpTo(kind),
      () => {},
      { index, nowMs: () => 0 },
    );
    failedCleanups = 0;
    const observe = ({ type }: Event) => {
      if (type === 'spool_cleanup_failed') failedCleanups++;
    };
    timer = new ManualTimer();
    applier = new Applier({ spool, store, timer, observe });
    const { count, lines } = toLogLines('auth', [anyRecord({ id: 'a', at: NOW })]);
    await spool.append('auth', count, lines);
    await spool.rotate();
    await applier.start();
  });
  afterEach(async () => {
    await applier.close();
    await spool.close();
    await store.close();
  });
  /** Advances the timer by at most 20 minutes, in small steps, so that nothing becomes due that is due every hour. */
  const pollForMinutes = (read: () => unknown) =>
    expect.poll(
      async () => {
        await timer.advance(3_000);
        return read();
      },
      { interval: 50 },
    );

  test('a failed flush is retried within seconds', async () => {
    const moved = `${directory}-moved`;
    renameSync(directory, moved); // the store cannot read the free disk space
    await timer.advance(3_600_000);
    await expect.poll(() => failedCleanups).toBe(1);
    expect(store.flushedUpTo('auth')).toBe(0);
    renameSync(moved, directory);
    await pollForMinutes(() => store.flushedUpTo('auth')).toBe(1);
  });

  test('a failed deletion of a segment is retried within seconds', async () => {
    const obstacle = join(directory, 'spool', 'next-numbers.json.new');
    mkdirSync(obstacle); // in place of the file that is written before the deletion
    await timer.advance(3_600_000);
    await expect.poll(() => failedCleanups).toBe(1);
    expect(spool.firstSegmentNumber).toBe(1);
    rmSync(obstacle, { recursive: true });
    await pollForMinutes(() => spool.firstSegmentNumber).toBe(2);
  });
});

test('records are stored in the order in which they were acknowledged', async () => {
  await start();
  for (let i = 0; i < 30; i++) await send(record(`id-${i}`));
  await expect.poll(() => idsOf(app, 'p')).toHaveLength(30);
  const { rows } = await app.store.query(savedQuery('select id from edge_logs', ['text']), {});
  expect(rows.map(([id]) => id)).toEqual(Array.from({ length: 30 }, (_, i) => `id-${i}`));
});

test('a record that the store rejects is quarantined, and the records before and after it are stored', async () => {
  await start();
  // The intake rules should leave no record for the store to reject. Control characters make the line of this record
  // longer than the store reads, because the line contains the project twice.
  const wide = { project: '\u0001'.repeat(MIB - 500), id: 'wide', message: 'm' };
  expect(await send([record('before'), wide, record('behind')])).toMatchObject({ status: 200, accepted: 3 });
  await send(record('later'));
  await expect.poll(() => idsOf(app, 'p'), { timeout: 10_000 }).toEqual(['before', 'behind', 'later']);
  const quarantined = app.events.filter(({ type }) => type === 'record_rejected_by_store').length;
  const stored = (await idsOf(app, wide.project)).length;
  expect(quarantined + stored).toBe(1);
  if (quarantined === 1) await expect.poll(() => existsSync(join(directory, 'quarantine.ndjson'))).toBe(true);
  expect(failures()).toBe(0);
});

describe('a batch beyond --intake-queue-bytes', () => {
  const batch = (number: number) =>
    Array.from({ length: 100 }, (_, i) => record(`${number}-${i}`, 'x'.repeat(2_000)));

  test('a batch beyond the limit gets 429 with Retry-After, is not stored, and is accepted when there is space again', async () => {
    await start(MIB);
    breakStore();
    const accepted: number[] = [];
    const limited: number[] = [];
    for (let number = 0; number < 12; number++) {
      const started = performance.now();
      const { status, headers, error } = await send(batch(number));
      if (status === 200) accepted.push(number);
      else {
        expect([status, error.code]).toEqual([429, 'rate_limited']);
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
        expect(performance.now() - started).toBeLessThan(2_000);
        limited.push(number);
      }
    }
    expect(accepted.length).toBeGreaterThan(2);
    expect(limited.length).toBeGreaterThan(2);
    repairStore();
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(accepted.length * 100);
    for (const number of limited) {
      await expect.poll(async () => (await send(batch(number))).status).toBe(200);
    }
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(1_200);
    expect(new Set(await idsOf(app, 'p')).size).toBe(1_200);
  });

  test('the limit counts bodies that are being received, and releases those whose connection closes', async () => {
    await start(MIB);
    const slow = await openConnection(app.internalUrl);
    const headers = { 'X-API-KEY': API_KEY, 'Content-Length': String(900 * 1024) };
    slow.write(rawRequest('POST /api/logs?source_name=edge', headers, '['.padEnd(450 * 1024)));
    const readQueueBytes = async () => {
      const { text } = await fetchResponse(`${app.internalUrl}/metrics`, {
        headers: { 'X-API-KEY': API_KEY },
      });
      return Number(/^dendro_intake_queue_bytes (\d+)$/m.exec(text)?.[1]);
    };
    await expect.poll(readQueueBytes).toBeGreaterThanOrEqual(450 * 1024);
    expect((await send(batch(2))).status).toBe(429);
    expect((await send(record('small'))).status).toBe(200);
    slow.close();
    await expect.poll(async () => (await send(batch(1))).status).toBe(200);
  });
});
