import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import type { Event } from '../../src/observe/event.ts';
import { Eviction } from '../../src/store/eviction.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { API_KEY, fetchResponse, micros, NOW, startTestApp, testStoreOptions } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord, record } from '../support/record.ts';
import { batches, openTestStore, savedQuery, type TestStore } from '../support/store.ts';

const HOUR = 3_600_000_000n;
const MEBIBYTE = 1024 * 1024;

/** Incompressible records, one an hour before the last, so that 1,000 of them use about 4 MiB. */
const largeRecords = (count: number, newest = 0): LogRecord[] =>
  Array.from({ length: count }, (_, i) => ({
    ...edgeRecord({
      id: String(newest + i),
      project: `p${i % 3}`,
      at: micros(NOW) - BigInt(newest + i) * HOUR,
    }),
    eventMessage: randomBytes(2048).toString('hex'),
  }));

const evict = (store: Store, maxBytes: number, targetBytes = maxBytes) =>
  store.evictOldest?.(async () => ({ maxBytes, targetBytes }));

describe('the store', () => {
  let fixture: TestStore;
  beforeEach(async () => {
    fixture = await openTestStore();
  });
  afterEach(() => fixture.close());

  const ids = async (kind = 'edge') =>
    (await fixture.rowsOf(`select id from ${kind}_logs order by timestamp desc`, ['text'])).map(([id]) =>
      Number(id),
    );

  test('the oldest records of all kinds are removed until the file uses little enough space', async () => {
    const { store } = fixture;
    await store.append(batches('edge', largeRecords(1000)));
    await store.append(
      batches('auth', [record({ id: '5000', project: 'p', at: micros(NOW) - 999n * HOUR })]),
    );
    const before = (await store.usedBytes?.()) ?? 0;
    const removed = await evict(store, before / 2);
    expect(await store.usedBytes?.()).toBeLessThanOrEqual(before / 2);
    const kept = await ids();
    expect(kept).toEqual(Array.from({ length: kept.length }, (_, i) => i)); // the newest ones, without a gap
    expect(kept.length).toBeGreaterThan(200);
    expect(await ids('auth')).toEqual([]);
    expect(removed).toBe(1001 - kept.length);
  });

  test('records that are not flushed yet are not removed, however old they are', async () => {
    const { store } = fixture;
    await store.append(batches('edge', largeRecords(200)));
    await store.apply({ ...toLogLines('edge', largeRecords(1, 2000)), firstSequence: 0 });
    await evict(store, 0);
    expect(await ids()).toEqual([2000]);
    await store.flush(['edge']);
    expect(await ids()).toEqual([2000]);
  });

  test('nothing is removed while the records use less space than allowed', async () => {
    await fixture.store.append(batches('edge', largeRecords(200)));
    expect(await evict(fixture.store, 100 * MEBIBYTE)).toBe(0);
    expect(await ids()).toHaveLength(200);
  });

  test('records are removed down to the target, but only if they use more space than the maximum', async () => {
    const { store } = fixture;
    await store.append(batches('edge', largeRecords(1000)));
    const used = (await store.usedBytes?.()) ?? 0;
    expect(await evict(store, used, used / 2)).toBe(0);
    expect(await evict(store, used - 1, used / 2)).toBeGreaterThan(0);
    expect(await store.usedBytes?.()).toBeLessThanOrEqual(used / 2);
  });

  test('newestTimestamp still returns a record that is not flushed, and so was not removed', async () => {
    const { store } = fixture;
    await store.append(batches('edge', largeRecords(10)));
    const [kept] = largeRecords(1, 2000);
    await store.apply({ ...toLogLines('edge', kept === undefined ? [] : [kept]), firstSequence: 0 });
    await evict(store, 0);
    expect(await ids()).toEqual([2000]);
    expect(await store.newestTimestamp('edge', micros(NOW))).toBe(BigInt(kept?.timestampMicros ?? 0));
  });

  /** Calls evictOldest again and again until `job` ends, and returns how many records were removed. */
  const evictDuring = async (job: Promise<unknown>, maxBytes: number) => {
    let isRunning = true;
    const ended = job.finally(() => {
      isRunning = false;
    });
    let removed = 0;
    while (isRunning) removed += (await evict(fixture.store, maxBytes)) ?? 0;
    await ended;
    return removed;
  };

  test('the blocks that an erasure overwrites do not count, so no other record is removed', async () => {
    const { store, rowsOf } = fixture;
    const measure = async () => (await store.usedBytes?.()) ?? 0;
    const erased = largeRecords(3000).map(each => ({ ...each, project: 'erased', extracted: {} }));
    await store.append(batches('auth', erased)); // before the others, because DuckDB truncates free blocks at the end of the file
    const usedByErased = await measure();
    await store.append(batches('edge', largeRecords(500)));
    const usedByKept = (await measure()) - usedByErased;
    const erasing = store.eraseProject({ project: 'erased' });
    const countErased = async () => (await rowsOf('select count(*) from auth_logs', ['integer']))[0]?.[0];
    while ((await countErased()) !== 0);
    expect(await evictDuring(erasing, usedByKept + 4 * MEBIBYTE)).toBe(0);
    expect(await erasing).toBe(3000);
    expect(await ids()).toHaveLength(500);
  });

  test('the limits are read when a running erasure has ended, because other files can shrink meanwhile', async () => {
    const { store } = fixture;
    await store.append(batches('edge', largeRecords(500)));
    let isErased = false;
    const erasing = store.eraseProject({ project: 'p1' }).then(() => {
      isErased = true;
    });
    const reads: boolean[] = [];
    await store.evictOldest?.(async () => {
      reads.push(isErased);
      return { maxBytes: 100 * MEBIBYTE, targetBytes: 100 * MEBIBYTE };
    });
    await erasing;
    expect(reads).toEqual([true]);
  });

  test('the blocks that a killed erasure has overwritten do not count after the next start', async () => {
    const { store, dataDirectory } = fixture;
    await store.append(batches('edge', largeRecords(500)));
    const used = (await store.usedBytes?.()) ?? 0;
    await store.close();
    const instance = await DuckDBInstance.create(join(dataDirectory, 'dendro.duckdb'));
    const connection = await instance.connect();
    await connection.run('create table free_block_filler as select hash(range) from range(2_000_000)');
    connection.closeSync();
    instance.closeSync();
    const reopened = await openStore(testStoreOptions(dataDirectory));
    try {
      expect(await evict(reopened, used + 4 * MEBIBYTE)).toBe(0);
      const { rows } = await reopened.query(savedQuery('select count(*) from edge_logs', ['integer']), {});
      expect(rows).toEqual([[500]]);
    } finally {
      await reopened.close();
    }
  });

  test('the copy that a compaction writes does not count, so no record is removed', async () => {
    const { store } = fixture;
    for (let i = 0; i < 16; i++) {
      const records = largeRecords(200, 5000 - i * 200);
      await store.apply({ ...toLogLines('edge', records), firstSequence: i * 200 });
      await store.flush(['edge']);
    }
    const used = (await store.usedBytes?.()) ?? 0;
    const compacting = Promise.resolve(store.compact?.(micros(NOW)));
    expect(await evictDuring(compacting, used + 4 * MEBIBYTE)).toBe(0);
    expect(await compacting).toBe(true);
    expect(await fixture.rowsOf('select count(*) from edge_logs', ['integer'])).toEqual([[3200]]);
  });
});

test('a server with a disk limit removes the oldest records and counts them', async () => {
  const timer = new ManualTimer();
  const app = await startTestApp({ maxDiskBytes: 3 * MEBIBYTE }, timer);
  try {
    await app.append('edge', largeRecords(1000));
    await timer.advance(60_000);
    await expect.poll(() => app.events.filter(({ type }) => type === 'records_evicted')).toHaveLength(1);
    expect(await app.store.usedBytes?.()).toBeLessThanOrEqual(0.8 * 3 * MEBIBYTE);
    const newest = await app.query('logs.all', { project: 'p0', project_tier: 'ENTERPRISE' });
    expect(newest.rows[0]?.['id']).toBe('0');
    const metrics = await fetchResponse(`${app.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
    expect(metrics.text).toMatch(/^dendro_records_evicted_total [1-9]\d*$/m);
  } finally {
    await app.close();
  }
});

test('files that are not records do not make a server remove records', async () => {
  const timer = new ManualTimer();
  const app = await startTestApp({ maxDiskBytes: 30 * MEBIBYTE }, timer);
  const findEvents = (prefix: string) => app.events.filter(({ type }) => type.includes(prefix));
  try {
    await app.append('edge', largeRecords(200));
    const temporary = join(app.dataDirectory, 'staging', 'spilled');
    writeFileSync(temporary, randomBytes(30 * MEBIBYTE)); // as if DuckDB wrote intermediate results
    await timer.advance(60_000);
    writeFileSync(join(app.dataDirectory, 'copy-of-something'), randomBytes(30 * MEBIBYTE));
    const checkAgain = async () => {
      await timer.advance(60_000);
      return findEvents('eviction_failed').length;
    };
    await expect.poll(checkAgain).toBeGreaterThan(0);
    expect(findEvents('records_evicted')).toEqual([]);
    expect(
      (await app.query('logs.all', { project: 'p0', project_tier: 'ENTERPRISE' })).rows.length,
    ).toBeGreaterThan(60);
  } finally {
    await app.close();
  }
});

test('files that grow while an eviction waits do not make it remove records', async () => {
  const timer = new ManualTimer();
  const events: Event[] = [];
  const fixture = await openTestStore();
  const { store, dataDirectory } = fixture;
  const slowStore: Store = {
    ...store,
    evictOldest: async readLimits => {
      writeFileSync(join(dataDirectory, 'copy-of-something'), randomBytes(30 * MEBIBYTE));
      return (await store.evictOldest?.(readLimits)) ?? 0;
    },
  };
  const eviction = new Eviction(slowStore, dataDirectory, 3 * MEBIBYTE, timer, event => events.push(event));
  try {
    await store.append(batches('edge', largeRecords(1000)));
    eviction.start();
    await timer.advance(60_000);
    await expect.poll(() => events.map(({ type }) => type)).toContain('eviction_failed');
    const { rows } = await store.query(savedQuery('select count(*) from edge_logs', ['integer']), {});
    expect(rows).toEqual([[1000]]);
  } finally {
    eviction.close();
    await fixture.close();
  }
});
