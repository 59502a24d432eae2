import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { Applier } from '../../src/intake/applier.ts';
import { Spool } from '../../src/intake/spool.ts';
import type { Event } from '../../src/observe/event.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { API_KEY, NOW, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { idsOf, readMetric, sendLogs } from '../support/logs.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';
import { record as anyRecord } from '../support/record.ts';
import { savedQuery } from '../support/store.ts';

const MIB = 1024 * 1024;

const directory = useDirectory();
let app: TestApp;
const start = async (intakeQueueBytes = 256 * MIB) => {
  app = await startTestApp({ store: testStoreOptions(directory), intakeQueueBytes });
};
afterEach(() => app.close());

/** The store and the spool of a server that has stopped. */
const openStopped = async () => {
  await start();
  await app.close();
  const store = await openStore(testStoreOptions(directory));
  const durableUpTo = (kind: LogKind) => store.durableUpTo(kind);
  const spool = await Spool.open({ directory: join(directory, 'spool'), durableUpTo, observe: () => {} });
  return { store, spool };
};
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
    expect(await idsOf(app, 'p')).toEqual(['before']);
    repairStore();
    await expect.poll(() => idsOf(app, 'p')).toHaveLength(6);
    await expect.poll(() => idsOf(app, 'p', 'auth')).toEqual(['other kind']);
    await send(record('zz after'));
    await expect
      .poll(() => idsOf(app, 'p'))
      .toEqual(['before', ...[0, 1, 2, 3, 4].map(i => `during-${i}`), 'zz after']);
    await expect.poll(() => [countApplied('edge'), countApplied('auth')]).toEqual([7, 1]); // reported after they are visible
    const recovered = app.events.filter(event => event.type === 'apply_recovered');
    expect(recovered.map(event => [event.kind, event.failures])).toEqual([['edge', failures()]]);
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
  /** Every apply of this kind fails until it is repaired. */
  const breakKind = (store: Store, broken: LogKind) => {
    const { apply } = store;
    store.apply = lines =>
      lines.kind === broken ? Promise.reject(new Error('no such table')) : apply(lines);
    return () => {
      store.apply = apply;
    };
  };

  test('the failure names its kind, other kinds wait, and every record is stored once when it works again', async () => {
    await start();
    const repair = breakKind(app.store, 'auth');
    for (let i = 0; i < 5; i++) {
      expect((await send(record(`auth ${i}`), 'auth')).status).toBe(200);
      expect((await send(record(`edge ${i}`))).status).toBe(200);
    }
    await expect.poll(failures).toBeGreaterThan(1);
    const kinds = app.events.flatMap(event => (event.type === 'apply_failed' ? event.kind : []));
    expect(new Set(kinds)).toEqual(new Set(['auth']));
    expect(await idsOf(app, 'p', 'auth')).toEqual([]);
    repair();
    await expect.poll(() => idsOf(app, 'p', 'auth')).toEqual([0, 1, 2, 3, 4].map(i => `auth ${i}`));
    await expect.poll(() => idsOf(app, 'p')).toEqual([0, 1, 2, 3, 4].map(i => `edge ${i}`));
    await expect.poll(() => [countApplied('edge'), countApplied('auth')]).toEqual([5, 5]);
  });

  test('replaying a spool of several batches stops at the failure, and later applies every record exactly once', async () => {
    const { store, spool } = await openStopped();
    for (let i = 0; i < 12; i++)
      for (const kind of ['rest', 'auth', 'storage'] as const) {
        const records = Array.from({ length: 50 }, (_, j) =>
          anyRecord({ id: `${kind} ${i} ${j}`, at: NOW, message: 'x'.repeat(5_000) }),
        );
        await spool.append([toLogLines(kind, records)]);
      }
    const applier = new Applier({ spool, store, timer: systemTimer, observe: () => {} });
    const repair = breakKind(store, 'auth');
    const count = async (kind: LogKind) => {
      const { rows } = await store.query(savedQuery(`select count(*) from ${kind}_logs`, ['integer']), {});
      return rows[0]?.[0];
    };
    await expect(applier.applySpooled()).rejects.toThrow('no such table');
    expect(await count('auth')).toBe(0);
    repair();
    await applier.applySpooled();
    expect([await count('rest'), await count('auth'), await count('storage')]).toEqual([600, 600, 600]);
    expect(spool.unappliedBytes).toBe(0);
    await spool.close();
    await store.close();
  });
});

test('a flush of all kinds, however long it takes, does not delay records that arrive meanwhile', async () => {
  const timer = new ManualTimer();
  app = await startTestApp({ store: testStoreOptions(directory) }, timer);
  const { flush } = app.store;
  let finish = () => {};
  const held = new Promise<void>(resolve => {
    finish = resolve;
  });
  let flushes = 0;
  app.store.flush = async kinds => {
    flushes++;
    await held;
    await flush(kinds);
  };
  const pollIds = () => expect.poll(() => timer.advance(250).then(() => idsOf(app, 'p')));
  await send(record('a'));
  await pollIds().toEqual(['a']);
  await timer.advance(3_600_000);
  await expect.poll(() => flushes).toBe(1);
  await send(record('b'));
  await pollIds().toEqual(['a', 'b']);
  expect(app.store.flushedUpTo('edge')).toBe(0);
  finish();
  await expect.poll(() => app.store.flushedUpTo('edge')).toBe(2);
});

describe('a cleanup that fails while no records arrive', () => {
  let store: Store;
  let spool: Spool;
  let applier: Applier;
  let timer: ManualTimer;
  let failedCleanups: number;
  beforeEach(async () => {
    ({ store, spool } = await openStopped());
    failedCleanups = 0;
    const observe = ({ type }: Event) => {
      if (type === 'spool_cleanup_failed') failedCleanups++;
    };
    timer = new ManualTimer();
    applier = new Applier({ spool, store, timer, observe });
    await spool.append([toLogLines('auth', [anyRecord({ id: 'a', at: NOW })])]);
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
    const firstSegment = join(directory, 'spool', '000000000001.spool');
    expect(existsSync(firstSegment)).toBe(true);
    rmSync(obstacle, { recursive: true });
    await pollForMinutes(() => existsSync(firstSegment)).toBe(false);
  });
});

describe('a store that is too slow for the records that wait', () => {
  let timer: ManualTimer;
  /** The apply that waits for the test. */
  let held: { readonly finish: () => void; readonly fail: () => void } | undefined;
  beforeEach(async () => {
    timer = new ManualTimer();
    held = undefined;
    app = await startTestApp({ store: testStoreOptions(directory) }, timer);
    const { apply } = app.store;
    app.store.apply = async lines => {
      await new Promise<void>((resolve, reject) => {
        held = { finish: resolve, fail: () => reject(new Error('the store fails')) };
      });
      await apply(lines);
    };
  });
  afterEach(() => held?.finish()); // also if the test fails
  /** 9 MiB: more than one batch. Returns when the store applies it. */
  const sendMuch = async (id: string) => {
    const records = Array.from({ length: 10 }, (_, i) => record(`${id} ${i}`, 'x'.repeat(0.9 * MIB)));
    expect((await send(records)).status).toBe(200);
    await waitForApply();
  };
  const waitForApply = () =>
    expect
      .poll(() => timer.advance(10).then(() => held), { interval: 10 }) // the applier pauses between batches
      .toBeDefined();
  const finishAfter = async (ms: number) => {
    await timer.advance(ms);
    held?.finish();
    held = undefined;
    await expect.poll(() => readMetric(app, 'dendro_intake_queue_bytes')).toBeLessThan(MIB);
  };

  test('senders get 429 while it will take more than 10 s, and wait while it will take more than 1 s', async () => {
    await sendMuch('measured');
    await finishAfter(12_000);
    await sendMuch('a');
    const { status, headers, error } = await send(record('refused'));
    expect([status, error.code, headers.get('retry-after')]).toEqual([429, 'rate_limited', '1']);
    await finishAfter(0);
    await sendMuch('b'); // it was fast once, so it is expected to take 9 s
    let acknowledged = 0;
    const waiting = send(record('waits')).then(({ status }) => {
      acknowledged = status;
    });
    await expect.poll(() => readMetric(app, 'dendro_intake_queue_bytes')).toBeGreaterThan(9 * MIB);
    await sleep(100);
    expect(acknowledged).toBe(0);
    await finishAfter(0);
    await waiting;
    expect(acknowledged).toBe(200);
  });

  test('senders get 429 while it hangs, and records are acknowledged at once while it fails', async () => {
    await sendMuch('a');
    await timer.advance(900);
    expect((await send(record('before it hangs'))).status).toBe(200);
    await timer.advance(10_000);
    expect((await send(record('while it hangs'))).status).toBe(429);
    held?.fail();
    await expect.poll(failures).toBe(1);
    expect((await send(record('while it fails'))).status).toBe(200);
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
  // Intake leaves no record for the store to reject, so the spool gets one directly. In a line, a control character takes six bytes, so
  // this line is longer than the store reads.
  const { store, spool } = await openStopped();
  const texts = { before: 'm', wide: '\u0001'.repeat(3 * MIB), behind: 'm' };
  const records = Object.entries(texts).map(([id, message]) => anyRecord({ id, at: NOW, message }));
  await spool.append([toLogLines('auth', records)]);
  await spool.close();
  await store.close();
  await start();
  const rejected = () => app.events.filter(({ type }) => type === 'record_rejected_by_store').length;
  await expect.poll(rejected).toBe(1);
  await expect.poll(() => existsSync(join(directory, 'quarantine.ndjson'))).toBe(true);
  const { rows } = await app.store.query(savedQuery('select id from auth_logs', ['text']), {});
  expect(rows).toEqual([['before'], ['behind']]);
  expect(failures()).toBe(0);
});

describe('a batch beyond the limit of the intake queue', () => {
  const batch = (number: number) =>
    Array.from({ length: 100 }, (_, i) => record(`${number}-${i}`, 'x'.repeat(2_000)));

  test('a batch beyond the limit gets 429 with Retry-After, is not stored, and is accepted when there is space again', async () => {
    await start(MIB);
    breakStore();
    const accepted: number[] = [];
    const limited: number[] = [];
    for (let number = 0; number < 12; number++) {
      const { status, headers, error } = await send(batch(number));
      if (status === 200) accepted.push(number);
      else {
        expect([status, error.code]).toEqual([429, 'rate_limited']);
        expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
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
    await expect.poll(() => readMetric(app, 'dendro_intake_queue_bytes')).toBeGreaterThanOrEqual(450 * 1024);
    expect((await send(batch(2))).status).toBe(429);
    expect((await send(record('small'))).status).toBe(200);
    slow.close();
    await expect.poll(async () => (await send(batch(1))).status).toBe(200);
  });
});
