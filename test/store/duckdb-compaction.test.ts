import { randomBytes } from 'node:crypto';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { edgeRecord } from '../support/record.ts';
import { makeDataFolder, removeDataFolder, savedQuery } from '../support/store.ts';

const START = micros('2026-10-01T12:00:00Z');
const NOW = micros('2026-11-14T13:00:00Z');
const DAY = 24n * 3600n * 1_000_000n;
/** So many seals are merged even while more come in; fewer, when nothing has come in for a while. */
const TOO_MANY = 16;
const QUIET_MS = 30_000;

let dataDirectory: string;
let store: Store;
let folded: number;

const open = async () => {
  store = await openStore(testStoreOptions(dataDirectory));
};

beforeEach(async () => {
  dataDirectory = makeDataFolder();
  folded = 0;
  vi.useFakeTimers({ toFake: ['performance'] });
  await open();
});
afterEach(async () => {
  vi.useRealTimers();
  await store.close();
  removeDataFolder(dataDirectory);
});

/** Each a second after the one before, of seven projects in turn. */
const made = (count: number, project = (n: number) => `p${n % 7}`, start = START): LogRecord[] =>
  Array.from({ length: count }, (_, i) => {
    const n = folded + i;
    return edgeRecord({ id: `n${n}`, at: start + BigInt(n) * 1_000_000n, project: project(n) });
  });

const seal = async (records: readonly LogRecord[]) => {
  await store.apply({ ...toLogLines('edge', records), firstSequence: folded });
  folded += records.length;
  await store.flush(['edge']);
};
const sealTimes = async (times: number, count: number) => {
  for (let i = 0; i < times; i++) await seal(made(count));
};

const tidy = () => store.compact?.(NOW);
const tidyWhenQuiet = async () => {
  if (await tidy()) throw new Error('it was not quiet yet');
  vi.advanceTimersByTime(QUIET_MS);
  return tidy();
};

const ask = async (sql: string, types: ('text' | 'integer')[]) =>
  (await store.query(savedQuery(sql, types), {})).rows;
/** How many records there are, and how many of them differ. */
const counts = async () =>
  (await ask('select count(*), count(distinct id) from edge_logs', ['integer', 'integer']))[0];
const tables = async () =>
  (
    await ask(
      `select table_name from duckdb_tables() where database_name = 'logs' and table_name like 'edge%' order by 1`,
      ['text'],
    )
  ).map(([name]) => String(name).replace(/\d+/, 'N'));

describe('tables of a few records each', () => {
  test('become one, sorted by project and time as a whole, with every record once', async () => {
    await sealTimes(3, 500);
    expect(await tidyWhenQuiet()).toBe(true);
    expect(await tables()).toEqual(['edge_merged_N']);
    expect(await counts()).toEqual([1500, 1500]);
    const [merged] = await ask(
      `select table_name from duckdb_tables() where table_name like 'edge_merged%'`,
      ['text'],
    );
    const misplaced = await ask(
      `select count(*) from (
        select project < lag(project) over w or (project = lag(project) over w and timestamp > lag(timestamp) over w)
          as is_misplaced
        from logs.${merged?.[0]} window w as (order by rowid)
      ) where is_misplaced`,
      ['integer'],
    );
    expect(misplaced).toEqual([[0]]);
    expect(await tidy()).toBe(false);
  });

  test('are still there after opening again, merged or not', async () => {
    await sealTimes(2, 80);
    await tidyWhenQuiet();
    await sealTimes(3, 10);
    await store.close();
    await open();
    expect(await counts()).toEqual([190, 190]);
    expect(await tables()).toEqual(['edge_merged_N', 'edge_sealed_N', 'edge_sealed_N', 'edge_sealed_N']);
    expect(store.flushedUpTo('edge')).toBe(190);
  });

  test('wait, when they are few, until nothing more has come in for a while', async () => {
    await sealTimes(4, 10);
    expect(await tidy()).toBe(false);
    vi.advanceTimersByTime(20_000);
    await sealTimes(1, 10);
    expect(await tidy()).toBe(false);
    vi.advanceTimersByTime(29_000);
    expect(await tidy()).toBe(false);
    vi.advanceTimersByTime(1_000);
    expect(await tidy()).toBe(true);
    expect(await tables()).toEqual(['edge_merged_N']);
    expect(await counts()).toEqual([50, 50]);
  });

  test('are merged when they are many, however much comes in', async () => {
    await sealTimes(TOO_MANY - 1, 10);
    expect(await tidy()).toBe(false);
    await sealTimes(1, 10);
    expect(await tidy()).toBe(true);
    expect(await tables()).toEqual(['edge_merged_N']);
  });

  test('leave a much larger one alone, until they are a quarter of it', async () => {
    await sealTimes(2, 800);
    await tidyWhenQuiet();
    await sealTimes(2, 80);
    expect(await tidyWhenQuiet()).toBe(true);
    expect(await tables()).toEqual(['edge_merged_N', 'edge_merged_N']);
    await sealTimes(2, 120);
    expect(await tidyWhenQuiet()).toBe(true);
    expect(await tables()).toEqual(['edge_merged_N']);
    expect(await counts()).toEqual([2000, 2000]);
  });

  test('keep projects of any name, and records of one moment', async () => {
    const names = ['', '\ufeffmark', '\ufeff', 'zero\0', '\u{1f600}', '\uffff', "quote'", 'a'.repeat(3000)];
    for (let i = 0; i < 3; i++)
      await seal(
        made(names.length, n => names[n % names.length] ?? '').map(each => ({ ...each, timestampMicros: 1 })),
      );
    const perName =
      'select count(distinct project), min(n) from (select project, count(*) n from edge_logs group by 1)';
    const before = await ask(perName, ['integer', 'integer']);
    expect(await tidyWhenQuiet()).toBe(true);
    expect(await ask(perName, ['integer', 'integer'])).toEqual(before);
    expect(before).toEqual([[names.length, 3]]);
  });

  test('are cut in slices where one project has more than can be sorted at once', async () => {
    const wide = (records: LogRecord[]) =>
      records.map(each => ({ ...each, eventMessage: 'x'.repeat(500_000) }));
    for (let i = 0; i < 4; i++) await seal(wide(made(40, () => 'large')));
    expect(await tidyWhenQuiet()).toBe(true);
    expect(await counts()).toEqual([160, 160]);
    const newest = await ask(`select id from edge_logs where project = 'large' limit 1`, ['text']);
    expect(newest).toEqual([['n159']]);
  });
});

describe('while tables are merged', () => {
  test('records come in and no query misses one or sees one twice', async () => {
    await sealTimes(4, 2000);
    let done = false;
    const looking = (async () => {
      let looks = 0;
      for (; !done; looks++) {
        const before = folded;
        const [count, differing] = (await counts()) ?? [];
        expect(count).toBe(differing);
        expect(count).toBeGreaterThanOrEqual(before - 100);
      }
      return looks;
    })();
    for (let round = 0; round < 4; round++) {
      const merging = tidyWhenQuiet();
      await sealTimes(4, 100);
      expect(await merging).toBe(true);
    }
    done = true;
    expect(await looking).toBeGreaterThan(5);
    expect(await counts()).toEqual([folded, folded]);
  });

  test('the store can be closed, and everything is there afterwards', async () => {
    await sealTimes(TOO_MANY, 200);
    const merging = store.compact?.(NOW).then(
      () => 'ended',
      () => 'cut short',
    );
    await store.close();
    expect(await merging).toMatch(/ended|cut short/);
    await open();
    expect(await counts()).toEqual([3200, 3200]);
    await sealTimes(1, 16);
    expect((await tidy()) || (await tidyWhenQuiet())).toBe(true);
    expect(await counts()).toEqual([3216, 3216]);
  });
});

describe('retention', () => {
  test('drops a table of which nothing is left, and takes the old records out of the others', async () => {
    await sealTimes(2, 80);
    await tidyWhenQuiet();
    await sealTimes(2, 10);
    expect(await store.deleteBefore(START + 175n * 1_000_000n)).toBe(175);
    expect(await tables()).toEqual(['edge_sealed_N']);
    expect(await counts()).toEqual([5, 5]);
    expect(await store.deleteBefore(START + 1000n * 1_000_000n)).toBe(5);
    expect(await counts()).toEqual([0, 0]);
    await sealTimes(1, 10);
    expect(await counts()).toEqual([10, 10]);
  });
});

describe('a file', () => {
  const sealRandom = (start = START, count = 2000) =>
    seal(
      made(count, undefined, start).map(each => ({
        ...each,
        eventMessage: randomBytes(2000).toString('base64'),
      })),
    );
  const size = () => statSync(join(dataDirectory, 'dendro.duckdb')).size;

  test('is not much larger than what it holds, once everything is merged', async () => {
    for (let i = 0; i < 4; i++) await sealRandom();
    const needed = size();
    expect(await tidyWhenQuiet()).toBe(true);
    expect(size()).toBeGreaterThan(1.5 * needed);
    while (await tidy());
    expect(size()).toBeLessThan(1.4 * needed);
    expect(await counts()).toEqual([folded, folded]);
  });

  test('nor where the records at its end are too new to be merged, and these stay as they lie', async () => {
    for (let i = 0; i < 4; i++) await sealRandom(NOW - 60n * DAY);
    await sealRandom(NOW - DAY);
    const before = size();
    await store.deleteBefore(NOW - 30n * DAY);
    const order = () => ask('select id from edge_logs', ['text']);
    const lay = await order();
    expect(await tidyWhenQuiet()).toBe(true);
    while (await tidy());
    expect(size()).toBeLessThan(before / 2);
    expect(await counts()).toEqual([2000, 2000]);
    expect(await order()).toEqual(lay);
    expect(await tables()).toEqual(['edge_sealed_N']);
  });

  test('is left alone where the records at its end do not fit into what is free', async () => {
    for (let i = 0; i < 2; i++) await sealRandom(NOW - 60n * DAY, 3000);
    await sealRandom(NOW - DAY, 9000);
    const before = size();
    await store.deleteBefore(NOW - 30n * DAY);
    expect(await tidyWhenQuiet()).toBe(false);
    expect(size()).toBe(before);
    expect(await counts()).toEqual([9000, 9000]);
  });

  const change = async (...statements: string[]) => {
    await store.close();
    const instance = await DuckDBInstance.create(join(dataDirectory, 'dendro.duckdb'));
    const connection = await instance.connect();
    for (const statement of statements) await connection.run(statement);
    connection.closeSync();
    instance.closeSync();
    await open();
  };

  test('in which a merge was cut short is opened as if it had not begun', async () => {
    await sealTimes(2, 10);
    await change('create table edge_merging_2 as from edge_logs');
    expect(await counts()).toEqual([20, 20]);
    expect(await tables()).toEqual(['edge_sealed_N', 'edge_sealed_N']);
  });

  test('of version 2 whose upgrade fails half-way is as it was, and is taken over when the cause is gone', async () => {
    await seal(made(10));
    const auth = toLogLines('auth', [edgeRecord({ at: START })]);
    await store.apply({ ...auth, firstSequence: 0 });
    await store.flush(['auth']);
    const version2 = ['auth', 'edge'].flatMap(kind => [
      `drop view ${kind}_logs`,
      `alter table ${kind}_sealed_${kind === 'auth' ? 5 : 1} rename to ${kind}_logs`,
    ]);
    const inTheWay = ['auth_sealed_2', 'edge_sealed_2']; // the first table is renamed, the second cannot be
    const obstacles = inTheWay.map(name => `create table ${name} (nothing boolean)`);
    await expect(change(...version2, ...obstacles, 'update schema_version set version = 2')).rejects.toThrow(
      /already exists/,
    );
    await change(...inTheWay.map(name => `drop table ${name}`));
    expect(await counts()).toEqual([10, 10]);
  });

  test('of version 2, with one table for each kind, is taken over', async () => {
    await sealTimes(1, 10);
    await change(
      'drop view edge_logs',
      'alter table edge_sealed_1 rename to edge_logs',
      'update schema_version set version = 2',
    );
    expect(await counts()).toEqual([10, 10]);
    await sealTimes(2, 80);
    expect(await tidyWhenQuiet()).toBe(true);
    expect(await counts()).toEqual([170, 170]);
  });
});

describe('tables of the last seven days', () => {
  test('and of the time before stay apart', async () => {
    for (const ago of [50n, 40n, 0n, 0n])
      for (let i = 0; i < 2; i++) await seal(made(40, undefined, NOW - ago * DAY));
    expect(await tidyWhenQuiet()).toBe(true);
    while (await tidy());
    expect(await tables()).toEqual(['edge_merged_N', 'edge_merged_N', 'edge_sealed_N']);
    expect(await counts()).toEqual([320, 320]);
  });
});
