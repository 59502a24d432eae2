import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { micros, NOW } from '../support/app.ts';
import { EmbeddedStore } from '../support/embedded-store.ts';
import { batches } from '../support/store.ts';

// Queries run all the time while records are flushed, appended, merged, expired, evicted and erased. Each query has to return every
// record once that is there from its start to its end, and no record that was removed before its start.

const DAY = 86_400_000_000n;
const ROUNDS = 4;
const OLD = micros(NOW) - 40n * DAY;

let embedded: EmbeddedStore;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  embedded = await EmbeddedStore.open();
});
afterEach(async () => {
  vi.useRealTimers();
  await embedded.remove();
});

/** Records that queries have to return, and those that they must not return. Others may be missing. */
const present = new Set<string>();
const removed = new Set<string>();

/** `onQuery` runs after each query. */
async function queryUntil(isDone: () => boolean, onQuery: () => void): Promise<void> {
  for (; !isDone(); onQuery()) {
    const [presentBefore, removedBefore] = [[...present], new Set(removed)];
    const ids = await embedded.ids();
    const returned = new Set(ids);
    expect(ids).toHaveLength(returned.size);
    expect(presentBefore.filter(id => present.has(id) && !returned.has(id))).toEqual([]);
    expect(ids.filter(id => removedBefore.has(id))).toEqual([]);
  }
}

const idsOf = (records: readonly LogRecord[]) => records.map(({ id }) => id);
async function store(records: readonly LogRecord[], work: () => Promise<unknown>): Promise<void> {
  await work();
  for (const id of idsOf(records)) present.add(id);
}
async function remove(ids: readonly string[], work: () => Promise<unknown>): Promise<void> {
  for (const id of ids) present.delete(id);
  await work();
  for (const id of ids) removed.add(id);
}
const flush = (records: readonly LogRecord[]) => store(records, () => embedded.flush(records));
const compact = async () => {
  await embedded.store.maintain('compact');
  vi.advanceTimersByTime(30_000);
  while (await embedded.store.maintain('compact'));
};

test('queries during flush, append, compaction, retention, eviction and erasure return each record exactly once', async () => {
  let isDone = false;
  const counts = [0, 0];
  const queries = Promise.all(
    counts.map((_, i) =>
      queryUntil(
        () => isDone,
        () => (counts[i] = (counts[i] ?? 0) + 1),
      ),
    ),
  );
  queries.catch(() => {
    isDone = true;
  });
  for (let round = 0; !isDone && (round < ROUNDS || Math.min(...counts) <= 10); round++) {
    const old = embedded.createRecords(30, OLD + BigInt(round) * 60_000_000n);
    for (let i = 0; i < 4; i++) await flush(embedded.createRecords(30));
    await flush([...old, ...embedded.createRecords(30)]);
    const appended = embedded.createRecords(30);
    await Promise.all([
      compact(),
      store(appended, () => embedded.store.append(batches('edge', appended))),
      flush(embedded.createRecords(30)),
    ]);
    const cut = OLD + BigInt(round) * 60_000_000n + 10_000_000n; // expires the first ten of the old records
    await remove(idsOf(old.slice(0, 10)), () =>
      embedded.store.maintain({ expire: { expiredBefore: cut, rewriteBefore: round % 2 === 0 ? 0n : cut } }),
    );
    const bytes = embedded.store.readStatistics().embedded?.fileBytes ?? 0;
    await remove(idsOf(old), () => embedded.store.maintain({ evictTo: bytes - 1 }));
    const erased = embedded.createRecords(30).map(each => ({ ...each, project: 'erased' }));
    await flush([...erased, ...embedded.createRecords(30)]);
    await remove(idsOf(erased), () => embedded.store.eraseProject({ project: 'erased' }));
  }
  isDone = true;
  await queries;
  expect(new Set(await embedded.ids())).toEqual(present);
  await embedded.reopen();
  expect(new Set(await embedded.ids())).toEqual(present);
});
