import { mkdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import type { Observe } from '../../src/observe/event.ts';
import { ROW_GROUP_ROWS } from '../../src/store/duckdb/checksum.ts';
import { parseManifest } from '../../src/store/duckdb/manifest.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import type { SpooledLines, Store, StoreCallbacks } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { useDirectory } from '../support/hooks.ts';
import { edgeRecord } from '../support/record.ts';
import { savedQuery } from '../support/store.ts';

const AT = '2026-11-14T12:34:56.789012Z';

const dataDirectory = useDirectory();
let store: Store;
let onRejected: () => void;
let rejected: Parameters<NonNullable<StoreCallbacks['recordRejected']>>[0][];

const reopen = async (overrides: Partial<StoreOptions> = {}, observe?: Observe) => {
  await store?.close();
  store = await openStore(
    { ...testStoreOptions(dataDirectory), ...overrides },
    {
      ...(observe && { observe }),
      recordRejected: record => {
        rejected.push(record);
        onRejected();
      },
    },
  );
};

beforeEach(async () => {
  rejected = [];
  onRejected = () => {};
  await reopen();
});
afterEach(() => store.close());

const createRecords = (count: number, from = 0): LogRecord[] =>
  Array.from({ length: count }, (_, i) =>
    edgeRecord({ id: `n${from + i}`, at: AT, project: `p${(from + i) % 7}` }),
  );

const spooled = (first: number, records: readonly LogRecord[], kind: LogKind = 'edge'): SpooledLines => ({
  ...toLogLines(kind, records),
  firstSequence: first,
});

const queryNumbers = async (sql: string) => {
  const { rows } = await store.query(savedQuery(sql, ['integer', 'integer']), {});
  return rows[0];
};
/** The number of records, and of different ids. */
const counts = () => queryNumbers('select count(*), count(distinct id) from edge_logs');
const readParts = () =>
  parseManifest(readFileSync(join(dataDirectory, 'manifest.json'), 'utf8')).parts.filter(
    ({ kind }) => kind === 'edge',
  );
const countInParts = () => readParts().reduce((sum, { records }) => sum + records, 0);

describe('applying records to a memtable', () => {
  test('apply updates the newest timestamp before it resolves', async () => {
    await store.apply(spooled(0, createRecords(1)));
    expect(await store.newestTimestamp('edge', micros(AT))).toBe(micros(AT));
  });
});

describe('flushing a memtable', () => {
  test('a memtable is flushed at exactly one row group', async () => {
    for (let first = 0; first < ROW_GROUP_ROWS + 5_000; first += 5_000)
      await store.apply(spooled(first, createRecords(5_000, first)));
    await expect.poll(() => store.flushedUpTo('edge'), { timeout: 30_000 }).toBe(ROW_GROUP_ROWS);
    expect(countInParts()).toBe(ROW_GROUP_ROWS);
    expect((await counts())?.[0]).toBe((await counts())?.[1]);
    expect(readParts()).toMatchObject([{ records: ROW_GROUP_ROWS, runs: 1 }]);
  });

  test('flush keeps records of 1 MB, of one, two and 50 projects', async () => {
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
    expect(countInParts()).toBe(180);
  });

  test('a memtable of the maximum size of a part is flushed', async () => {
    await reopen({ maxPartBytes: 5_000 });
    for (let first = 0; first < 400; first += 100)
      await store.apply(spooled(first, createRecords(100, first)));
    await expect.poll(() => store.flushedUpTo('edge')).toBe(400);
    expect(readParts().map(({ records }) => records)).toEqual([100, 100, 100, 100]);
    expect(await counts()).toEqual([400, 400]);
  });

  test('flush frees the memory of the memtable, also if queries have read it', async () => {
    const bytes = async () =>
      (await queryNumbers('select sum(memory_usage_bytes)::bigint, 0 from duckdb_memory()'))?.[0];
    const wide = createRecords(2_000).map(each => ({ ...each, eventMessage: 'x'.repeat(10_000) }));
    await store.apply(spooled(0, wide));
    const full = Number(await bytes());
    expect(full).toBeGreaterThan(15e6);
    const prepared = savedQuery('select count(*) from edge_logs where $id is null or id = $id', ['integer']);
    for (const value of ['n1', null, null]) await store.query(prepared, { id: { type: 'text', value } });
    await store.flush(['edge']);
    await expect.poll(async () => Number(await bytes())).toBeLessThan(full / 4); // the memtable is dropped after the flush
  });
});

describe('a line that the store rejects', () => {
  const broken = (...columns: (string | number)[]) => `${columns.join('\x1f')}\n`;
  const BROKEN: [string, string][] = [
    ['another line format', '{"id":"x"}\x1f{}\n'],
    ['texts that are not JSON', broken('j', '"x', 1, '"p"', '""', '"u"', '"p"', '{}')],
    ['metadata that is not JSON', broken('', 'x', 1, 'p', '', 'u', 'p', '{"a":')],
    ['a missing project', broken('', 'x', 1, '\x1e', '', 'u', 'p', '{}')],
    ['a timestamp out of range', broken('', 'x', 1e30, 'p', '', 'u', 'p', '{}')],
    ['a timestamp that is not a number', broken('', 'x', 'now', 'p', '', 'u', 'p', '{}')],
    ['missing metadata', broken('', 'x', 1, 'p', '', 'u', 'p')],
  ];

  test.each(BROKEN)(
    'a line with %s is reported, and the lines before and after it are stored',
    async (_, line) => {
      const good = createRecords(9).map(each => Buffer.from(toLogLines('edge', [each]).lines));
      const lines = Buffer.concat([...good.slice(0, 4), Buffer.from(line), ...good.slice(4)]);
      await store.apply({ kind: 'edge', firstSequence: 0, count: 10, lines });
      expect(await counts()).toEqual([9, 9]);
      expect(rejected).toEqual([{ kind: 'edge', line, reason: expect.stringMatching(/\S/) }]);
      await store.flush(['edge']);
      expect(store.flushedUpTo('edge')).toBe(10);
      await store.apply({ kind: 'edge', firstSequence: 10, count: 1, lines: Buffer.from(line) });
      await store.flush(['edge']);
      expect(store.flushedUpTo('edge')).toBe(11);
      await store.apply(spooled(11, createRecords(1, 20)));
      expect(await counts()).toEqual([10, 10]);
    },
  );
});

describe('a batch that fails half-way', () => {
  test('after a batch fails half-way, applying it again stores no record twice and reports no rejection twice', async () => {
    const stagingFile = join(dataDirectory, 'staging', 'apply.lines');
    const good = createRecords(9).map(each => Buffer.from(toLogLines('edge', [each]).lines));
    const broken = Buffer.from('{"id":\x1f{}\n');
    const lines = Buffer.concat([...good.slice(0, 4), broken, ...good.slice(4)]);
    onRejected = () => mkdirSync(stagingFile); // the next write of the staging file fails
    await expect(store.apply({ kind: 'edge', firstSequence: 7, count: 10, lines })).rejects.toThrow(
      /EISDIR|directory/,
    );
    const before = (await counts())?.[0];
    expect(before).toBeGreaterThan(0);
    expect(before).toBeLessThan(9);
    rmSync(stagingFile, { recursive: true });
    onRejected = () => {};
    await store.apply({ kind: 'edge', firstSequence: 7, count: 10, lines });
    expect(await counts()).toEqual([9, 9]);
    expect(rejected).toHaveLength(1);
    await store.flush(['edge']);
    expect(store.flushedUpTo('edge')).toBe(17);
    expect(await counts()).toEqual([9, 9]);
  });
});

test('a flush of several kinds leaves no memtable waiting for another one, so that records can be applied meanwhile', async () => {
  const waiting: (number | undefined)[] = [];
  await reopen({}, ({ type }) => {
    if (type === 'flushed') waiting.push(store.readStatistics().embedded?.immutableMemtables);
  });
  const kinds: LogKind[] = ['edge', 'auth', 'rest'];
  for (const kind of kinds) await store.apply(spooled(0, createRecords(2), kind));
  await store.flush(kinds);
  expect(waiting).toEqual([0, 0, 0]);
});
