// The disk becomes full while a part is written, as if another program used the space that was free before.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { reportFault } from '../support/fault-report.ts';
import { listParts } from '../support/parts.ts';
import { edgeRecord } from '../support/record.ts';
import { savedQuery } from '../support/store.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const START = micros('2026-10-01T12:00:00Z');
const NOW = micros('2026-11-14T13:00:00Z');
const ATTEMPTS = 6;

let disk: SmallDisk | undefined;
beforeEach(() => {
  disk = mountSmallDisk(240);
});
afterEach(() => disk?.remove());

function requireDisk({ skip }: TestContext): SmallDisk {
  return disk ?? skip('A FULL DISK IS NOT TESTED HERE: mounting a small file system needs Linux and root');
}

test.for([
  [0, 64 * KIB],
  [10, 0],
  [40, MIB],
  [80, 300 * KIB],
  [120, 0],
  [160, MIB],
  [200, 300 * KIB],
  [300, 64 * KIB],
])(
  'if the disk fills %i ms after the start of a compaction, with %i bytes left, no record is lost and a later compaction succeeds',
  { timeout: 60_000 },
  async ([afterMs = 0, leftBytes = 0], context) => {
    const { path, fill, free } = requireDisk(context);
    let store = await open(path);
    for (let i = 0; i < 16; i++) {
      await applyRecords(store, i * 2_000, 2_000);
      await store.flush(['edge']);
    }
    const compaction = store.maintain('compact').catch(() => {}); // may fail; the next one succeeds
    await sleep(afterMs);
    fill(leftBytes);
    await compaction;
    expect(await counts(store)).toEqual([32_000, 32_000]);
    free();
    store = await reopen(store, path); // otherwise the kind waits 10 minutes after a failed compaction
    await applyRecords(store, 32_000, 10);
    await store.flush(['edge']);
    while (await store.maintain('compact'));
    store = await reopen(store, path);
    const [count = 0, distinct = 0] = ((await counts(store)) ?? []).map(Number);
    reportFault({
      fault: 'full disk during compaction',
      runs: 1,
      outcome: 'compaction waits, and succeeds with free space',
      lost: 32_010 - distinct,
      duplicated: count - distinct,
    });
    expect([count, distinct]).toEqual([32_010, 32_010]);
    expect(listParts(path, 'edge').map(({ records }) => records)).toEqual([32_000, 10]);
    await store.close();
    expect(readdirSync(join(path, 'parts'))).toHaveLength(2);
  },
);

test('if the disk fills while a part is written, the part is deleted, queries are served, and a later flush succeeds', {
  timeout: 120_000,
}, async context => {
  const { path, fillAtOnce, free } = requireDisk(context);
  const store = await open(path);
  const failures: unknown[] = [];
  for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
    const records = attempt * 40_000;
    await applyRecords(store, records, 40_000);
    const flushing = store.flush(['edge']).catch(error => failures.push(error));
    const isWriting = () => readdirSync(join(path, 'parts')).some(name => name.endsWith('.tmp'));
    while (!isWriting() && store.flushedUpTo('edge') === records) await sleep(1);
    await sleep(attempt * 50);
    fillAtOnce();
    await flushing;
    expect(await counts(store)).toEqual([records + 40_000, records + 40_000]);
    expect(isWriting()).toBe(false);
    free();
    if (store.flushedUpTo('edge') === records) {
      await sleep(5_100); // the pause after a failed flush
      await store.flush([]);
    }
    expect(store.flushedUpTo('edge')).toBe(records + 40_000);
  }
  expect(failures.length).toBeGreaterThan(0);
  const reopened = await reopen(store, path);
  const [count = 0, distinct = 0] = ((await counts(reopened)) ?? []).map(Number);
  const sent = ATTEMPTS * 40_000;
  reportFault({
    fault: 'full disk while a part is written',
    runs: ATTEMPTS,
    outcome: 'the part is deleted, queries are served, and a flush with free space succeeds',
    lost: sent - distinct,
    duplicated: count - distinct,
  });
  expect([count, distinct]).toEqual([sent, sent]);
  await reopened.close();
});

test('if the disk fills while a compaction writes its part, the part is deleted, queries are served, and a later compaction succeeds', {
  timeout: 120_000,
}, async context => {
  const { path, fillAtOnce, free } = requireDisk(context);
  let store = await open(path);
  for (let i = 0; i < 16; i++) {
    await applyRecords(store, i * 5_000, 5_000);
    await store.flush(['edge']);
  }
  const failures: Error[] = [];
  for (let attempt = 0; attempt < ATTEMPTS && listParts(path, 'edge').length > 1; attempt++) {
    let isDone = false;
    const compaction = store
      .maintain('compact')
      .catch(error => failures.push(error))
      .finally(() => {
        isDone = true;
      });
    const isWriting = () => readdirSync(join(path, 'parts')).some(name => name.endsWith('.tmp'));
    while (!isWriting() && !isDone) await sleep(1);
    await sleep(attempt * 50);
    fillAtOnce();
    await compaction;
    expect(await counts(store)).toEqual([80_000, 80_000]);
    expect(isWriting()).toBe(false);
    free();
    store = await reopen(store, path); // otherwise the kind waits 10 minutes after a failed compaction
  }
  expect(failures.map(({ message }) => message)).toContainEqual(expect.stringMatching(/no space left/i));
  while (await store.maintain('compact'));
  expect(listParts(path, 'edge').map(({ records }) => records)).toEqual([80_000]);
  const [count = 0, distinct = 0] = ((await counts(store)) ?? []).map(Number);
  reportFault({
    fault: 'full disk during compaction',
    runs: failures.length,
    outcome: 'compaction waits, and succeeds with free space',
    lost: 80_000 - distinct,
    duplicated: count - distinct,
  });
  expect([count, distinct]).toEqual([80_000, 80_000]);
  await store.close();
});

test('if one kind is too large for a compaction on a nearly full disk, the other kinds are compacted', async context => {
  const { path, fill } = requireDisk(context);
  const store = await open(path);
  try {
    for (let i = 0; i < 16; i++) {
      await applyRecords(store, i * 2_000, 2_000);
      const small = toLogLines('postgres', [{ ...edgeRecord({ at: START }), extracted: {} }]);
      await store.apply({ ...small, firstSequence: i });
      await store.flush(['edge', 'postgres']);
    }
    fill(68 * MIB); // 64 MiB are reserved
    await expect(store.maintain('compact')).rejects.toThrow('not enough disk space');
    expect(await store.maintain('compact')).toBeGreaterThan(0);
    expect(await store.maintain('compact')).toBe(0);
    expect(listParts(path, 'postgres')).toHaveLength(1);
    expect(listParts(path, 'edge')).toHaveLength(16);
  } finally {
    await store.close();
  }
});

/** Fails the test if the store fails: a full disk is temporary. */
function open(path: string): Promise<Store> {
  const options = { ...testStoreOptions(path), clock: () => NOW };
  return openStore(options, { storeFailed: error => expect.fail(String(error)) });
}

async function reopen(store: Store, path: string): Promise<Store> {
  await store.close();
  return open(path);
}

/** Random texts, so that they cannot be compressed. */
function applyRecords(store: Store, first: number, count: number): Promise<void> {
  const records = Array.from({ length: count }, (_, i) =>
    edgeRecord({
      id: `n${first + i}`,
      at: START + BigInt(first + i) * 1_000_000n,
      project: `p${i % 7}`,
      metadata: { text: Array.from({ length: 20 }, () => Math.random().toString(36)).join('') },
    }),
  );
  return store.apply({ ...toLogLines('edge', records), firstSequence: first });
}

async function counts(store: Store) {
  const sql = 'select count(*), count(distinct id) from edge_logs';
  return (await store.query(savedQuery(sql, ['integer', 'integer']), {})).rows[0];
}
