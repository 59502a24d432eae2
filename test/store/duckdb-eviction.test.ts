import { randomBytes } from 'node:crypto';
import { mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { API_KEY, fetchResponse, micros, NOW, startTestApp } from '../support/app.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { edgeRecord } from '../support/record.ts';

const HOUR = 3_600_000_000n;
const MEBIBYTE = 1024 * 1024;

/** Incompressible records, one an hour before the last, so that 1,000 of them use about 3 MiB. */
const largeRecords = (count: number, newest = 0): LogRecord[] =>
  Array.from({ length: count }, (_, i) => ({
    ...edgeRecord({
      id: String(newest + i),
      project: `p${i % 3}`,
      at: micros(NOW) - BigInt(newest + i) * HOUR,
    }),
    eventMessage: randomBytes(3072).toString('base64'),
  }));

test('a server with a disk limit removes the oldest records and counts them', async () => {
  const timer = new ManualTimer();
  const app = await startTestApp({ maxDiskBytes: 3 * MEBIBYTE }, timer);
  onTestFinished(() => app.close());
  await app.append('edge', largeRecords(1000));
  await timer.advance(60_000);
  await expect.poll(() => app.events.filter(({ type }) => type === 'records_evicted')).toHaveLength(1);
  expect(app.store.readStatistics().embedded?.fileBytes).toBeLessThanOrEqual(0.8 * 3 * MEBIBYTE);
  const newest = await app.query('logs.all', { project: 'p0', project_tier: 'ENTERPRISE' });
  expect(newest.rows[0]?.['id']).toBe('0');
  const metrics = await fetchResponse(`${app.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
  expect(metrics.text).toMatch(/^dendro_records_evicted_total [1-9]\d*$/m);
});

test('a part that is removed and cannot be deleted is reported and counted', async () => {
  const timer = new ManualTimer();
  const app = await startTestApp({ maxDiskBytes: 3 * MEBIBYTE }, timer);
  onTestFinished(() => app.close());
  await app.append('edge', largeRecords(1000));
  const parts = join(app.dataDirectory, 'parts');
  for (const name of readdirSync(parts)) {
    rmSync(join(parts, name));
    mkdirSync(join(parts, name)); // cannot be deleted like a file
  }
  await timer.advance(60_000);
  await expect
    .poll(() => app.events)
    .toContainEqual({
      type: 'part_deletion_failed',
      path: expect.stringContaining('edge-'),
      error: expect.any(Error),
    });
  const metrics = await fetchResponse(`${app.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
  expect(metrics.text).toMatch(/^dendro_failures_total\{operation="part_deletion",kind=""\} [1-9]\d*$/m);
});

test('files that are not records do not make a server remove records', async () => {
  const timer = new ManualTimer();
  const app = await startTestApp({ maxDiskBytes: 30 * MEBIBYTE }, timer);
  const findEvents = (prefix: string) => app.events.filter(({ type }) => type.includes(prefix));
  onTestFinished(() => app.close());
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
});
