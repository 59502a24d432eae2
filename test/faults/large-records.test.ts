import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { listParts } from '../support/parts.ts';
import { edgeRecord } from '../support/record.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';

const START = micros('2026-10-01T12:00:00Z');
const NOW = micros('2026-11-14T13:00:00Z');
const IDLE_MS = 30_000;
const FLUSHES = 5;
const RECORDS_PER_FLUSH = 30;

let dataDirectory: string;
let store: Store;
beforeEach(async () => {
  dataDirectory = createDataDirectory();
  vi.useFakeTimers({ toFake: ['performance'] });
  const options = { ...testStoreOptions(dataDirectory), clock: () => NOW };
  store = await openStore({ ...options, memoryLimit: '130MB' });
});
afterEach(async () => {
  vi.useRealTimers();
  await store.close();
  removeDataDirectory(dataDirectory);
});

/** Applies records of almost 1 MiB, five at a time. */
async function applyLargeRecords(first: number): Promise<void> {
  const eventMessage = randomBytes(700 * 1024).toString('base64');
  for (let n = first; n < first + RECORDS_PER_FLUSH; n += 5) {
    const records = [0, 1, 2, 3, 4].map(i => {
      const at = START + BigInt(n + i) * 1_000_000n;
      return { ...edgeRecord({ id: `n${n + i}`, at, project: 'large' }), eventMessage };
    });
    await store.apply({ ...toLogLines('edge', records), firstSequence: n });
  }
}

test('records of 1 MiB are compacted within a small memory limit, and other kinds are compacted too', async () => {
  for (let i = 0; i < FLUSHES; i++) {
    await applyLargeRecords(i * RECORDS_PER_FLUSH);
    const small = toLogLines('postgres', [{ ...edgeRecord({ at: START }), extracted: {} }]);
    await store.apply({ ...small, firstSequence: i });
    await store.flush(['edge', 'postgres']);
  }
  expect(await store.maintain('compact')).toBe(0); // no kind is idle yet
  // Each merge changes its window, which is idle again 30 s after the next call.
  for (let call = 0; call < 4 * FLUSHES; call++) {
    vi.advanceTimersByTime(IDLE_MS);
    await store.maintain('compact');
  }
  // All of them have 140 MB. At most 64 MiB of large records are merged, which are two of the five parts.
  const recordsOf = (kind: LogKind) => listParts(dataDirectory, kind).map(({ records }) => records);
  expect(recordsOf('edge')).toEqual([30, 60, 60]);
  expect(recordsOf('postgres')).toEqual([FLUSHES]);
  const { rows } = await store.query(
    savedQuery('select count(*), count(distinct id) from edge_logs', ['integer', 'integer']),
    {},
  );
  expect(rows).toEqual([[FLUSHES * RECORDS_PER_FLUSH, FLUSHES * RECORDS_PER_FLUSH]]);
});
