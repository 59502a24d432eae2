import { randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { API_KEY, fetchResponse, micros, NOW, startTestApp } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord, record } from '../support/record.ts';
import { batches, openTestStore, type TestStore } from '../support/store.ts';

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
    const removed = await store.evictOldest?.(before / 2);
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
    await store.evictOldest?.(0);
    expect(await ids()).toEqual([2000]);
    await store.flush(['edge']);
    expect(await ids()).toEqual([2000]);
  });

  test('nothing is removed while the records use less space than allowed', async () => {
    await fixture.store.append(batches('edge', largeRecords(200)));
    expect(await fixture.store.evictOldest?.(100 * MEBIBYTE)).toBe(0);
    expect(await ids()).toHaveLength(200);
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
