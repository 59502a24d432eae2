import { mkdirSync, rmdirSync, rmSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { ROW_GROUP_ROWS as UNIT } from '../../src/store/duckdb/parts.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { SpooledLines, Store, StoreEvents } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { edgeRecord, record } from '../support/record.ts';
import { makeDataFolder, removeDataFolder, savedQuery } from '../support/store.ts';

const AT = '2026-11-14T12:34:56.789012Z';

let dataDirectory: string;
let store: Store;
let onRefused: () => void;
let refused: Parameters<NonNullable<StoreEvents['recordRejected']>>[0][];

const reopen = async () => {
  await store?.close();
  store = await openStore(testStoreOptions(dataDirectory), {
    recordRejected: line => {
      refused.push(line);
      onRefused();
    },
  });
};

beforeEach(async () => {
  dataDirectory = makeDataFolder();
  refused = [];
  onRefused = () => {};
  await reopen();
});
afterEach(async () => {
  await store.close();
  removeDataFolder(dataDirectory);
});

const numbered = (count: number, from = 0): LogRecord[] =>
  Array.from({ length: count }, (_, i) =>
    edgeRecord({ id: `n${from + i}`, at: AT, project: `p${(from + i) % 7}` }),
  );

const spooled = (first: number, records: readonly LogRecord[], kind: LogKind = 'edge'): SpooledLines => ({
  ...toLogLines(kind, records),
  firstSequence: first,
});

const askEdge = async (sql: string) => {
  const { rows } = await store.query(savedQuery(sql, ['integer', 'integer']), {});
  return rows[0];
};
/** How many records there are, and how many of them differ. */
const counts = () => askEdge('select count(*), count(distinct id) from edge_logs');
const inFile = async () => (await askEdge('select count(*), 0 from logs.edge_logs'))?.[0];

describe('folding', () => {
  test('records can be seen at once, before they are in the file', async () => {
    await store.apply(spooled(0, numbered(3)));
    expect(await counts()).toEqual([3, 3]);
    expect(await inFile()).toBe(0);
    expect(store.flushedUpTo('edge')).toBe(0);
  });

  test('records that are given again are passed over, in whole and in part', async () => {
    await store.apply(spooled(0, numbered(3)));
    await store.apply(spooled(0, numbered(3)));
    await store.apply(spooled(1, numbered(4, 1)));
    expect(await counts()).toEqual([5, 5]);
  });

  test('records after a gap are taken', async () => {
    await store.apply(spooled(100, numbered(2)));
    await store.apply(spooled(102, numbered(2, 2)));
    await store.flush(['edge']);
    expect(await counts()).toEqual([4, 4]);
    expect(store.flushedUpTo('edge')).toBe(104);
  });

  test('kinds are numbered apart', async () => {
    await store.apply(spooled(0, numbered(2)));
    await store.apply(spooled(0, [record({ at: AT }), record({ at: AT })], 'auth'));
    await store.flush(['auth']);
    expect([store.flushedUpTo('edge'), store.flushedUpTo('auth')]).toEqual([0, 2]);
  });

  test('a fold that the disk refuses can be given again, and nothing is there twice', async () => {
    const inTheWay = join(dataDirectory, 'intake', 'fold.lines');
    await store.apply(spooled(0, numbered(2)));
    mkdirSync(inTheWay);
    await expect(store.apply(spooled(2, numbered(2, 2)))).rejects.toThrow('EISDIR');
    rmdirSync(inTheWay);
    await store.apply(spooled(0, numbered(4)));
    expect(await counts()).toEqual([4, 4]);
  });

  test('the newest record is known as soon as it can be seen', async () => {
    await store.apply(spooled(0, numbered(1)));
    expect(await store.newest('edge', micros(AT))).toBe(micros(AT));
  });
});

describe('sealing', () => {
  test('what is settled is in the file, counted once, and still there after opening again', async () => {
    await store.apply(spooled(0, numbered(10)));
    await store.flush(['edge']);
    expect(await counts()).toEqual([10, 10]);
    expect(await inFile()).toBe(10);
    await store.apply(spooled(10, numbered(5, 10)));
    expect(await counts()).toEqual([15, 15]);
    await reopen();
    expect(await counts()).toEqual([10, 10]);
    expect(store.flushedUpTo('edge')).toBe(10);
    await store.apply(spooled(5, numbered(10, 5)));
    expect(await counts()).toEqual([15, 15]);
  });

  test('a unit is sealed by itself when it is full, exactly one row group, sorted by project and time', async () => {
    for (let first = 0; first < UNIT + 5_000; first += 5_000)
      await store.apply(spooled(first, numbered(5_000, first)));
    await expect.poll(() => store.flushedUpTo('edge'), { timeout: 30_000 }).toBe(UNIT);
    expect(await inFile()).toBe(UNIT);
    expect((await counts())?.[0]).toBe((await counts())?.[1]);
    const sorted = await askEdge(
      `select count(*) filter (project < before), 0 from (
        select project, lag(project) over (order by rowid) as before from logs.edge_sealed_1)`,
    );
    expect(sorted?.[0]).toBe(0);
  });

  test('records of any size are sealed whole, however they spread over projects', async () => {
    for (const projects of [1, 2, 50]) {
      const first = store.flushedUpTo('edge');
      const wide = Array.from({ length: 60 }, (_, i) => ({
        ...edgeRecord({ id: `${projects}-${i}`, at: AT, project: `p${i % projects}` }),
        eventMessage: 'x'.repeat(1_000_000),
      }));
      await store.apply(spooled(first, wide));
      await store.flush(['edge']);
    }
    expect(await counts()).toEqual([180, 180]);
    expect(await inFile()).toBe(180);
  });

  test.each([
    ['planned when it is prepared', ''],
    ['planned when it is run', 'where $nothing is null'],
  ])('while units are sealed, no query misses a record or sees one twice: %s', async (_, where) => {
    const sql = `select count(*), count(distinct id) from edge_logs ${where}`;
    const nothing = { type: 'text', value: null } as const;
    const look = () => store.query(savedQuery(sql, ['integer', 'integer']), { nothing });
    let folded = 0;
    let done = false;
    const looking = (async () => {
      let looks = 0;
      while (!done) {
        const before = folded;
        const [count, differing] = (await look()).rows[0] ?? [];
        expect(count).toBe(differing);
        expect(count).toBeGreaterThanOrEqual(before);
        looks++;
      }
      return looks;
    })();
    for (let round = 0; round < 40; round++) {
      await store.apply(spooled(folded, numbered(500, folded)));
      folded += 500;
      await store.flush(['edge']);
    }
    done = true;
    expect(await looking).toBeGreaterThan(5);
    expect(await counts()).toEqual([20_000, 20_000]);
  });

  test('the memory of a unit is free once it is sealed, though queries have read it', async () => {
    const bytes = async () =>
      (await askEdge('select sum(memory_usage_bytes)::bigint, 0 from duckdb_memory()'))?.[0];
    const wide = numbered(2_000).map(each => ({ ...each, eventMessage: 'x'.repeat(10_000) }));
    await store.apply(spooled(0, wide));
    const full = Number(await bytes());
    expect(full).toBeGreaterThan(15e6);
    const kept = savedQuery('select count(*) from edge_logs where $id is null or id = $id', ['integer']);
    for (const value of ['n1', null, null]) await store.query(kept, { id: { type: 'text', value } });
    await store.flush(['edge']);
    expect(Number(await bytes())).toBeLessThan(full / 4);
  });
});

describe('a line that the store refuses', () => {
  const broken = (...columns: (string | number)[]) => `${columns.join('\x1f')}\n`;
  const BROKEN: [string, string][] = [
    ['another form', '{"id":"x"}\x1f{}\n'],
    ['texts that are no JSON', broken('j', '"x', 1, '"p"', '""', '"u"', '"p"', '{}')],
    ['metadata that is no JSON', broken('', 'x', 1, 'p', '', 'u', 'p', '{"a":')],
    ['a project that is missing', broken('', 'x', 1, '\x1e', '', 'u', 'p', '{}')],
    ['a timestamp past all time', broken('', 'x', 1e30, 'p', '', 'u', 'p', '{}')],
    ['a timestamp that is none', broken('', 'x', 'now', 'p', '', 'u', 'p', '{}')],
    ['a line without metadata', broken('', 'x', 1, 'p', '', 'u', 'p')],
  ];

  test.each(BROKEN)('for %s is told, and those around it are kept', async (_, line) => {
    const good = numbered(9).map(each => Buffer.from(toLogLines('edge', [each]).lines));
    const lines = Buffer.concat([...good.slice(0, 4), Buffer.from(line), ...good.slice(4)]);
    await store.apply({ kind: 'edge', firstSequence: 0, count: 10, lines });
    expect(await counts()).toEqual([9, 9]);
    expect(refused).toEqual([{ kind: 'edge', line, reason: expect.stringMatching(/\S/) }]);
    await store.flush(['edge']);
    expect(store.flushedUpTo('edge')).toBe(10);
    await store.apply({ kind: 'edge', firstSequence: 10, count: 1, lines: Buffer.from(line) });
    await store.flush(['edge']);
    expect(store.flushedUpTo('edge')).toBe(11);
    await store.apply(spooled(11, numbered(1, 20)));
    expect(await counts()).toEqual([10, 10]);
  });
});

describe('a fold that fails half-way', () => {
  test('is given again, and nothing is there twice or told twice', async () => {
    const staged = join(dataDirectory, 'intake', 'fold.lines');
    const good = numbered(9).map(each => Buffer.from(toLogLines('edge', [each]).lines));
    const broken = Buffer.from('{"id":\x1f{}\n');
    const lines = Buffer.concat([...good.slice(0, 4), broken, ...good.slice(4)]);
    onRefused = () => mkdirSync(staged); // from here on nothing can be written under that name
    await expect(store.apply({ kind: 'edge', firstSequence: 7, count: 10, lines })).rejects.toThrow(
      /EISDIR|directory/,
    );
    const before = (await counts())?.[0];
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(9);
    rmSync(staged, { recursive: true });
    onRefused = () => {};
    await store.apply({ kind: 'edge', firstSequence: 7, count: 10, lines });
    expect(await counts()).toEqual([9, 9]);
    expect(refused).toHaveLength(1);
    await store.flush(['edge']);
    expect(store.flushedUpTo('edge')).toBe(17);
    expect(await counts()).toEqual([9, 9]);
  });
});

describe('retention', () => {
  test('records from before a moment go, to the microsecond, in the file and out of every answer', async () => {
    const cut = micros(AT);
    await store.append(
      (async function* () {
        yield toLogLines('edge', [
          edgeRecord({ id: 'before', at: cut - 1n }),
          edgeRecord({ id: 'at', at: cut }),
        ]);
      })(),
    );
    expect(await store.deleteBefore(cut)).toBe(1);
    const { rows } = await store.query(savedQuery('select id from edge_logs', ['text']), {});
    expect(rows).toEqual([['at']]);
    expect(await store.newest('edge', cut)).toBe(cut);
    expect(await store.deleteBefore(cut + 1n)).toBe(1);
    expect(await store.newest('edge', cut + 1n)).toBeUndefined();
  });

  test('the space of records that went is used again', async () => {
    const random = () => Math.random().toString(36).repeat(40);
    const size = () => statSync(join(dataDirectory, 'dendro.duckdb')).size;
    let first = 0;
    const day = async (at: bigint) => {
      const records = Array.from({ length: 3_000 }, () => edgeRecord({ at, metadata: { random: random() } }));
      await store.apply(spooled(first, records));
      first += records.length;
      await store.flush(['edge']);
    };
    const start = micros(AT);
    for (let i = 0n; i < 3n; i++) await day(start + i);
    const full = size();
    for (let i = 3n; i < 12n; i++) {
      await store.deleteBefore(start + i - 2n);
      await day(start + i);
    }
    expect(size()).toBeLessThan(full * 2);
    expect((await counts())?.[0]).toBe(9_000);
  });
});
