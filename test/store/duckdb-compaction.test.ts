import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { edgeRecord } from '../support/record.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';

const START = micros('2026-10-01T12:00:00Z');
const NOW = micros('2026-11-14T13:00:00Z');
const DAY = 24n * 3600n * 1_000_000n;
/** A kind that is not idle is compacted after this many flushes, an idle kind after two. */
const MIN_FLUSHES = 16;
const IDLE_MS = 30_000;

let dataDirectory: string;
let store: Store;
let applied: number;

const open = async () => {
  store = await openStore(testStoreOptions(dataDirectory));
};

beforeEach(async () => {
  dataDirectory = createDataDirectory();
  applied = 0;
  vi.useFakeTimers({ toFake: ['performance'] });
  await open();
});
afterEach(async () => {
  vi.useRealTimers();
  await store.close();
  removeDataDirectory(dataDirectory);
});

/** One record a second, of seven projects. */
const createRecords = (count: number, project = (n: number) => `p${n % 7}`, start = START): LogRecord[] =>
  Array.from({ length: count }, (_, i) => {
    const n = applied + i;
    return edgeRecord({ id: `n${n}`, at: start + BigInt(n) * 1_000_000n, project: project(n) });
  });

const flush = async (records: readonly LogRecord[]) => {
  await store.apply({ ...toLogLines('edge', records), firstSequence: applied });
  applied += records.length;
  await store.flush(['edge']);
};
const flushTimes = async (times: number, count: number) => {
  for (let i = 0; i < times; i++) await flush(createRecords(count));
};

/** Runs the same jobs as Maintenance: a vacuum if there is nothing to compact. */
const maintain = async () => (await store.compact?.(NOW)) || (await store.vacuum?.());
const maintainWhenIdle = async () => {
  if (await maintain()) throw new Error('there was work before the store was idle');
  vi.advanceTimersByTime(IDLE_MS);
  return maintain();
};

const query = async (sql: string, types: ('text' | 'integer')[]) =>
  (await store.query(savedQuery(sql, types), {})).rows;
/** The number of records, and of different ids. */
const counts = async () =>
  (await query('select count(*), count(distinct id) from edge_logs', ['integer', 'integer']))[0];
const tablesLike = async (pattern: string) => {
  const sql = `select table_name from duckdb_tables() where database_name = 'logs' and table_name like '${pattern}' order by 1`;
  return (await query(sql, ['text'])).map(([name]) => String(name));
};
const parts = async () => (await tablesLike('edge%')).map(name => name.replace(/\d+/, 'N'));

describe('compaction', () => {
  test('compaction merges parts into one that is sorted by project and time and has every record once', async () => {
    await flushTimes(3, 500);
    expect(await maintainWhenIdle()).toBe(true);
    expect(await parts()).toEqual(['edge_compacted_N']);
    expect(await counts()).toEqual([1500, 1500]);
    const [compacted] = await tablesLike('edge_compacted%');
    const misplaced = await query(
      `select count(*) from (
        select project < lag(project) over w or (project = lag(project) over w and timestamp > lag(timestamp) over w)
          as is_misplaced
        from logs.${compacted} window w as (order by rowid)
      ) where is_misplaced`,
      ['integer'],
    );
    expect(misplaced).toEqual([[0]]);
    expect(await maintain()).toBe(false);
  });

  test('the store loads compacted and other parts when it is opened again', async () => {
    await flushTimes(2, 80);
    await maintainWhenIdle();
    await flushTimes(3, 10);
    await store.close();
    await open();
    expect(await counts()).toEqual([190, 190]);
    expect(await parts()).toEqual(['edge_compacted_N', 'edge_part_N', 'edge_part_N', 'edge_part_N']);
    expect(store.flushedUpTo('edge')).toBe(190);
  });

  test('compaction of fewer than 16 parts waits until nothing was flushed for 30 s', async () => {
    await flushTimes(4, 10);
    expect(await maintain()).toBe(false);
    vi.advanceTimersByTime(20_000);
    await flushTimes(1, 10);
    expect(await maintain()).toBe(false);
    vi.advanceTimersByTime(29_000);
    expect(await maintain()).toBe(false);
    vi.advanceTimersByTime(1_000);
    expect(await maintain()).toBe(true);
    expect(await parts()).toEqual(['edge_compacted_N']);
    expect(await counts()).toEqual([50, 50]);
  });

  test('compaction of 16 parts does not wait', async () => {
    await flushTimes(MIN_FLUSHES - 1, 10);
    expect(await maintain()).toBe(false);
    await flushTimes(1, 10);
    expect(await maintain()).toBe(true);
    expect(await parts()).toEqual(['edge_compacted_N']);
  });

  test('compaction skips a larger part until the newer ones have a quarter of its rows', async () => {
    await flushTimes(2, 800);
    await maintainWhenIdle();
    await flushTimes(2, 80);
    expect(await maintainWhenIdle()).toBe(true);
    expect(await parts()).toEqual(['edge_compacted_N', 'edge_compacted_N']);
    await flushTimes(2, 120);
    expect(await maintainWhenIdle()).toBe(true);
    expect(await parts()).toEqual(['edge_compacted_N']);
    expect(await counts()).toEqual([2000, 2000]);
  });

  test('compaction keeps projects of any name, and records with the same timestamp', async () => {
    const names = ['', '\ufeffmark', '\ufeff', 'zero\0', '\u{1f600}', '\uffff', "quote'", 'a'.repeat(3000)];
    for (let i = 0; i < 3; i++)
      await flush(
        createRecords(names.length, n => names[n % names.length] ?? '').map(each => ({
          ...each,
          timestampMicros: 1,
        })),
      );
    const perName =
      'select count(distinct project), min(n) from (select project, count(*) n from edge_logs group by 1)';
    const before = await query(perName, ['integer', 'integer']);
    expect(await maintainWhenIdle()).toBe(true);
    expect(await query(perName, ['integer', 'integer'])).toEqual(before);
    expect(before).toEqual([[names.length, 3]]);
  });

  test('compaction sorts a project in slices if it has more than can be sorted at once', async () => {
    const wide = (records: LogRecord[]) =>
      records.map(each => ({ ...each, eventMessage: 'x'.repeat(500_000) }));
    for (let i = 0; i < 4; i++) await flush(wide(createRecords(40, () => 'large')));
    expect(await maintainWhenIdle()).toBe(true);
    expect(await counts()).toEqual([160, 160]);
    const newest = await query(`select id from edge_logs where project = 'large' limit 1`, ['text']);
    expect(newest).toEqual([['n159']]);
  });
});

describe('during a compaction', () => {
  test('records can be flushed during a compaction, and no query misses a record or counts one twice', async () => {
    await flushTimes(4, 2000);
    let done = false;
    const querying = (async () => {
      let queries = 0;
      for (; !done; queries++) {
        const before = applied;
        const [count, distinct] = (await counts()) ?? [];
        expect(count).toBe(distinct);
        expect(count).toBeGreaterThanOrEqual(before - 100);
      }
      return queries;
    })();
    for (let round = 0; round < 4; round++) {
      const compaction = maintainWhenIdle();
      await flushTimes(4, 100);
      expect(await compaction).toBe(true);
    }
    done = true;
    expect(await querying).toBeGreaterThan(5);
    expect(await counts()).toEqual([applied, applied]);
  });

  test('a vacuum waits for a running compaction, and both keep every record', async () => {
    await flushTimes(MIN_FLUSHES, 500);
    const [compacted] = await Promise.all([store.compact?.(NOW), store.vacuum?.(), store.compact?.(NOW)]);
    expect(compacted).toBe(true);
    expect(await counts()).toEqual([applied, applied]);
  });

  test('the store can be closed during a compaction, and has every record when it is opened again', async () => {
    await flushTimes(MIN_FLUSHES, 200);
    const compaction = store.compact?.(NOW).then(
      () => 'completed',
      () => 'cancelled',
    );
    await store.close();
    expect(await compaction).toMatch(/completed|cancelled/);
    await open();
    expect(await counts()).toEqual([3200, 3200]);
    await flushTimes(1, 16);
    expect((await maintain()) || (await maintainWhenIdle())).toBe(true);
    expect(await counts()).toEqual([3216, 3216]);
  });
});

describe('retention', () => {
  test('retention drops a part whose records all expired, and deletes the expired records of the others', async () => {
    await flushTimes(2, 80);
    await maintainWhenIdle();
    await flushTimes(2, 10);
    expect(await store.deleteBefore(START + 175n * 1_000_000n)).toBe(175);
    expect(await parts()).toEqual(['edge_part_N']);
    expect(await counts()).toEqual([5, 5]);
    expect(await store.deleteBefore(START + 1000n * 1_000_000n)).toBe(5);
    expect(await counts()).toEqual([0, 0]);
    await flushTimes(1, 10);
    expect(await counts()).toEqual([10, 10]);
  });
});

describe('vacuum', () => {
  const flushRandom = (start = START, count = 2000) =>
    flush(
      createRecords(count, undefined, start).map(each => ({
        ...each,
        eventMessage: randomBytes(2000).toString('base64'),
      })),
    );
  const size = () => statSync(join(dataDirectory, 'dendro.duckdb')).size;

  test('vacuum shrinks the file after a compaction to about the size of its records', async () => {
    for (let i = 0; i < 4; i++) await flushRandom();
    const needed = size();
    expect(await maintainWhenIdle()).toBe(true);
    expect(size()).toBeGreaterThan(1.5 * needed);
    while (await maintain());
    expect(size()).toBeLessThan(1.4 * needed);
    expect(await counts()).toEqual([applied, applied]);
  });

  test('vacuum moves a part that is too new for a compaction, and keeps the order of its records', async () => {
    for (let i = 0; i < 4; i++) await flushRandom(NOW - 60n * DAY);
    await flushRandom(NOW - DAY);
    const sizeBefore = size();
    await store.deleteBefore(NOW - 30n * DAY);
    const order = () => query('select id from edge_logs', ['text']);
    const orderBefore = await order();
    expect(await maintainWhenIdle()).toBe(true);
    while (await maintain());
    expect(size()).toBeLessThan(sizeBefore / 2);
    expect(await counts()).toEqual([2000, 2000]);
    expect(await order()).toEqual(orderBefore);
    expect(await parts()).toEqual(['edge_part_N']);
  });

  test('vacuum does nothing if the last part does not fit into the free blocks', async () => {
    for (let i = 0; i < 2; i++) await flushRandom(NOW - 60n * DAY, 3000);
    await flushRandom(NOW - DAY, 9000);
    await store.deleteBefore(NOW - 30n * DAY);
    const before = size();
    expect(await maintainWhenIdle()).toBe(false);
    expect(size()).toBe(before);
    expect(await counts()).toEqual([9000, 9000]);
  });
});

describe('the age of parts', () => {
  test('parts of the last seven days are not merged with older parts', async () => {
    for (const ago of [50n, 40n, 0n, 0n])
      for (let i = 0; i < 2; i++) await flush(createRecords(40, undefined, NOW - ago * DAY));
    expect(await maintainWhenIdle()).toBe(true);
    while (await maintain());
    expect(await parts()).toEqual(['edge_compacted_N', 'edge_compacted_N', 'edge_part_N']);
    expect(await counts()).toEqual([320, 320]);
  });
});
