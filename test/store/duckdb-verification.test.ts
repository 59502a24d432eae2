import { truncateSync } from 'node:fs';
import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { replaceInBlocks } from '../support/duckdb-blocks.ts';
import { EmbeddedStore, overwriteRandomly } from '../support/embedded-store.ts';
import { batches } from '../support/store.ts';

// A part is read back after it was synced. These tests damage it in between, as a faulty disk or a defect of DuckDB would.

const { open } = promises;
/** Called before a part is synced. */
let beforeSync = (_path: string) => {};

let embedded: EmbeddedStore;
beforeEach(async () => {
  vi.useFakeTimers({ toFake: ['performance'] });
  promises.open = (path, ...options) => {
    if (String(path).endsWith('.duckdb.tmp')) beforeSync(String(path));
    return open(path, ...options);
  };
  syncBuiltinESMExports();
  embedded = await EmbeddedStore.open();
});
afterEach(async () => {
  vi.useRealTimers();
  beforeSync = () => {};
  promises.open = open;
  syncBuiltinESMExports();
  await embedded.remove();
});

/** Damages the next part that is written. */
function damageNext(damage = (path: string) => overwriteRandomly(path, 3 * 4096, 1e9)): void {
  beforeSync = path => {
    beforeSync = () => {};
    damage(path);
  };
}
const messages = () => embedded.eventsOf('verification_failed').map(({ error }) => (error as Error).message);
const filesOfParts = () => embedded.parts.map(({ file }) => file);
const idsOf = (count: number) => Array.from({ length: count }, (_, i) => `n${i}`);

describe('a flush', () => {
  test.each<[name: string, damage: (path: string) => void, problem: RegExp]>([
    ['has damaged blocks', path => overwriteRandomly(path, 3 * 4096, 1e9), /Error: /],
    ['has no valid header', path => overwriteRandomly(path, 0, 3 * 4096), /Error: /],
    ['is too short', path => truncateSync(path, 20_000), /Error: /],
    [
      'has a wrong record and a valid checksum of DuckDB',
      path => expect(replaceInBlocks(path, 'n7', 'm7', true)).toBeGreaterThan(0),
      /^the records of the part differ from those that were written$/,
    ],
  ])(
    'whose part %s fails, keeps the records in memory, and is repeated later',
    async (_, damage, problem) => {
      damageNext(damage);
      await expect(embedded.flush(embedded.createRecords(10))).rejects.toThrow();
      expect(messages()).toEqual([expect.stringMatching(problem)]);
      expect(embedded.eventsOf('flush_failed')).toHaveLength(1);
      expect([embedded.store.flushedUpTo('edge'), embedded.files]).toEqual([0, []]);
      expect(await embedded.ids()).toEqual(idsOf(10));
      await expect(embedded.store.flush(['edge'])).rejects.toThrow(
        `less than 5 s ago: ${messages()[0]?.split('\n')[0]}`,
      );
      vi.advanceTimersByTime(5_000);
      await embedded.store.flush(['edge']);
      expect(embedded.store.flushedUpTo('edge')).toBe(10);
      expect(filesOfParts()).toEqual(embedded.files);
      await embedded.reopen();
      expect(await embedded.ids()).toEqual(idsOf(10));
    },
  );
});

test('a compaction whose part differs keeps the parts as they are', async () => {
  for (let i = 0; i < 2; i++) await embedded.flush(embedded.createRecords(10));
  await embedded.store.maintain('compact');
  vi.advanceTimersByTime(30_000);
  const before = filesOfParts();
  damageNext();
  await expect(embedded.store.maintain('compact')).rejects.toThrow();
  expect([filesOfParts(), embedded.files]).toEqual([before, before]);
  expect(embedded.manifest.setAside).toEqual([]);
  expect(await embedded.ids()).toEqual(idsOf(20));
});

test.each([
  ['one part', undefined],
  ['several parts', 100],
])('an append of %s that differs stores nothing, and can be repeated', async (_, maxPartBytes) => {
  await embedded.reopen({ maxPartBytes });
  const records = Array.from({ length: 4 }, () => embedded.createRecords(5));
  let written = 0;
  beforeSync = path => {
    if (++written === (maxPartBytes === undefined ? 1 : 3)) overwriteRandomly(path, 3 * 4096, 1e9);
  };
  const append = () => embedded.store.append(batches('edge', ...records));
  await expect(append()).rejects.toThrow();
  expect([embedded.files, await embedded.ids()]).toEqual([[], []]);
  await append();
  expect(filesOfParts().length > 1).toBe(maxPartBytes !== undefined);
  expect(await embedded.ids()).toEqual(idsOf(20));
});
