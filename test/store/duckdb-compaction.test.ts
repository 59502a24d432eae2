import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { micros, NOW } from '../support/app.ts';
import { EmbeddedStore } from '../support/embedded-store.ts';

const DAY = 86_400_000_000n;
/** Parts of a window in which records arrive are merged when there are this many, those of an idle one when there are two. */
const MIN_RUNS = 16;
const IDLE_MS = 30_000;

let embedded: EmbeddedStore;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  embedded = await EmbeddedStore.open();
});
afterEach(async () => {
  vi.useRealTimers();
  await embedded.remove();
});

const flushTimes = async (times: number, count: number) => {
  for (let i = 0; i < times; i++) await embedded.flush(embedded.createRecords(count));
};
const compact = async () => embedded.store.maintain('compact');
const compactWhenIdle = async () => {
  if (await compact()) throw new Error('there was work before the window was idle');
  vi.advanceTimersByTime(IDLE_MS);
  return compact();
};
const recordsOfParts = () => embedded.parts.map(({ records }) => records);
const expectIds = async (count: number) =>
  expect(await embedded.ids()).toEqual(Array.from({ length: count }, (_, i) => `n${i}`));

test('a compaction merges parts into one that is sorted by project and time, and deletes their files', async () => {
  await flushTimes(3, 500);
  expect(await compactWhenIdle()).toBeGreaterThan(0);
  const [part, ...others] = embedded.parts;
  expect([part, others]).toMatchObject([{ records: 1500, runs: 1 }, []]);
  await expect.poll(() => embedded.files).toEqual([part?.file]);
  await expectIds(1500);
  expect(await compact()).toBe(0);
  await embedded.reopen();
  await expectIds(1500);

  await embedded.close();
  const instance = await DuckDBInstance.create(embedded.partPath(part?.file ?? ''), {
    access_mode: 'READ_ONLY',
  });
  const connection = await instance.connect();
  const result = await connection.runAndReadAll(
    `select count(*) from (
      select project < lag(project) over w or (project = lag(project) over w and timestamp > lag(timestamp) over w)
        as is_misplaced
      from records window w as (order by rowid)
    ) where is_misplaced`,
  );
  expect(result.value(0, 0)).toBe(0n);
  connection.closeSync();
  instance.closeSync();
});

test('when parts use up the file descriptors, they are merged earlier, and a flush that failed is repeated', async () => {
  await embedded.reopen({ maxParts: 4 });
  for (const count of [1, 10, 100]) await embedded.flush(embedded.createRecords(count));
  expect(await compact()).toBe(0);
  await flushTimes(1, 1000);
  await expect(embedded.flush(embedded.createRecords(1))).rejects.toThrow(
    /^the store has 5 parts and needs 69 file descriptors, but this process may open only 68; raise the limit/,
  );
  expect(embedded.files).toHaveLength(4);
  await expectIds(1112);
  expect(await compact()).toBe(1111);
  vi.advanceTimersByTime(5_000); // the pause after a failed flush
  await embedded.apply(embedded.createRecords(1), 'auth');
  await expect.poll(recordsOfParts).toEqual([1111, 1]);
  await embedded.reopen();
  await expectIds(1112);
});

test('fewer than 16 parts are merged when none was added to their window for 30 s', async () => {
  await flushTimes(4, 10);
  expect(await compact()).toBe(0);
  vi.advanceTimersByTime(20_000);
  await flushTimes(1, 10);
  expect(await compact()).toBe(0);
  vi.advanceTimersByTime(IDLE_MS - 1_000);
  expect(await compact()).toBe(0);
  vi.advanceTimersByTime(1_000);
  expect(await compact()).toBeGreaterThan(0);
  expect(recordsOfParts()).toEqual([50]);
  await expectIds(50);
});

test('16 parts are merged at once', async () => {
  await flushTimes(MIN_RUNS - 1, 10);
  expect(await compact()).toBe(0);
  await flushTimes(1, 10);
  expect(await compact()).toBeGreaterThan(0);
  expect(recordsOfParts()).toEqual([160]);
});

test('a project that has more than can be sorted at once is sorted in slices', async () => {
  for (let i = 0; i < 4; i++)
    await embedded.flush(
      embedded
        .createRecords(40, micros(NOW) - DAY + BigInt(i))
        .map(each => ({ ...each, project: 'large', eventMessage: 'x'.repeat(500_000) })),
    );
  expect(await compactWhenIdle()).toBeGreaterThan(0);
  await expectIds(160);
  expect((await embedded.query('select id from edge_logs limit 1')).rows).toEqual([['n159']]);
});

test('records of 1 MiB are compacted within a small memory limit, and other kinds are compacted too', async () => {
  await embedded.reopen({ memoryLimit: '130MB' });
  const start = micros('2026-10-01T12:00:00Z');
  for (let flush = 0; flush < 5; flush++) {
    const eventMessage = randomBytes(700 * 1024).toString('base64');
    for (let n = flush * 30; n < (flush + 1) * 30; n += 5) {
      const records = embedded
        .createRecords(5, start + BigInt(n) * 1_000_000n)
        .map(each => ({ ...each, project: 'large', eventMessage }));
      await embedded.store.apply({ ...toLogLines('edge', records), firstSequence: n });
    }
    await embedded.apply(embedded.createRecords(1, start), 'postgres');
    await embedded.store.flush(['edge', 'postgres']);
  }
  expect(await compact()).toBe(0); // no kind is idle yet
  // Each merge changes its window, which is idle again 30 s after the next call.
  for (let call = 0; call < 20; call++) {
    vi.advanceTimersByTime(IDLE_MS);
    await compact();
  }
  // All of them have 140 MB. At most 64 MiB of large records are merged, which are two of the five parts.
  const recordsOf = (kind: LogKind) =>
    embedded.parts.filter(part => part.kind === kind).map(({ records }) => records);
  expect(recordsOf('edge')).toEqual([30, 60, 60]);
  expect(recordsOf('postgres')).toEqual([5]);
  const ids = await embedded.ids();
  expect([ids.length, new Set(ids).size]).toEqual([150, 150]);
});

test('the store can be closed during a compaction, and has every record when it is opened again', async () => {
  await flushTimes(MIN_RUNS, 200);
  const compaction = compact().then(
    () => 'completed',
    () => 'cancelled',
  );
  await embedded.close();
  expect(await compaction).toMatch(/completed|cancelled/);
  await embedded.reopen();
  expect(embedded.files).toEqual(embedded.parts.map(({ file }) => file).sort());
  await expectIds(3200);
});
