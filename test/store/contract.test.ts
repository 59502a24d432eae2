import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import type { ColumnType, SpooledLines, Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { isOnClickHouse, storeOverrides } from '../support/clickhouse.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';
import { batches, makeDataFolder, removeDataFolder, savedQuery } from '../support/store.ts';

// What every store keeps, whatever engine it is: `npm test` runs this on DuckDB, `npm run test:clickhouse` on ClickHouse.

const AT = '2026-11-14T12:34:56.789012Z';

/** A parameter, as the store's own SQL writes it. */
const text = (name: string) => (isOnClickHouse() ? `{${name}:String}` : `$${name}`);
/** Takes hours: long enough that whoever sees it end has seen it cancelled. */
const endless = () =>
  savedQuery(
    isOnClickHouse()
      ? 'select sum(sipHash64(number)) from numbers(100000000000000)'
      : 'select sum(a.range * b.range % 7) from range(10000000) a, range(10000000) b',
    ['number'],
  );

let dataDirectory: string;
let options: StoreOptions;
let store: Store;
beforeAll(async () => {
  dataDirectory = makeDataFolder();
  options = { ...testStoreOptions(dataDirectory), ...(await storeOverrides()) };
  store = await openStore(options);
});
afterAll(async () => {
  await store.close();
  removeDataFolder(dataDirectory);
});

const rowsOf = async (sql: string, types: readonly ColumnType[] = [], values = {}) =>
  (await store.query(savedQuery(sql, types), values)).rows;
const countOf = async (kind: LogKind, project: string) =>
  (await rowsOf(`select count(*) from ${kind}_logs where project = '${project}'`, ['integer']))[0]?.[0];
const spooled = (first: number, kind: LogKind, records: readonly LogRecord[]): SpooledLines => ({
  ...toLogLines(kind, records),
  firstSequence: first,
});
const several = (count: number, project: string, from = 0) =>
  Array.from({ length: count }, (_, i) => record({ id: `n${from + i}`, at: AT, project }));

describe('appending', () => {
  test.each(LOG_KINDS)('records of the kind %s are kept and read, to the microsecond', async kind => {
    const draft = { id: kind, at: AT, project: 'kinds' };
    const made = { edge: edgeRecord, function_edge: functionEdgeRecord }[kind as 'edge'] ?? record;
    await store.append(batches(kind, [made(draft)]));
    expect(
      await rowsOf(
        `select id, timestamp, project, event_message, metadata from ${kind}_logs where project = 'kinds'`,
        ['text', 'unix_microseconds', 'text', 'text', 'json'],
      ),
    ).toEqual([[kind, micros(AT), 'kinds', 'something happened', '{}']]);
  });

  test('what was extracted out of the metadata is kept, missing values as null', async () => {
    const extracted = (functionId: string, ms: number | null, status: number | null) =>
      functionEdgeRecord({ at: AT, project: 'extracted', functionId, ms, status });
    await store.append(batches('function_edge', [extracted('f', 1.25, 404), extracted('g', null, null)]));
    await store.append(batches('edge', [edgeRecord({ at: AT, project: 'extracted', url: 'u', path: 'p' })]));
    const sql =
      "select function_id, execution_time_ms, status_code from function_edge_logs where project = 'extracted' order by 1";
    expect(await rowsOf(sql, ['text', 'number', 'integer'])).toEqual([
      ['f', 1.25, 404],
      ['g', null, null],
    ]);
    expect(await rowsOf("select url, path from edge_logs where project = 'extracted'")).toEqual([['u', 'p']]);
  });

  test('a number is kept to 15 digits', async () => {
    // ClickHouse reads a number in JSON in a fast way that may be off in the last place of a double.
    const sent = [5.12350942163366e-98, 0.1, 0.3, 1234.5678, 123456.789012345, 1e15];
    await store.append(
      batches(
        'function_edge',
        sent.map(ms => functionEdgeRecord({ at: AT, project: 'digits', ms })),
      ),
    );
    const sql =
      "select execution_time_ms from function_edge_logs where project = 'digits' order by execution_time_ms";
    const kept = (await rowsOf(sql, ['number'])).map(([ms]) => Number(Number(ms).toPrecision(15)));
    expect(kept).toEqual(sent);
  });

  test('no batches, and empty batches, are fine and keep nothing', async () => {
    await store.append(batches('auth'));
    await store.append(batches('auth', [], [record({ at: AT, project: 'empty' })], []));
    expect(await countOf('auth', 'empty')).toBe(1);
  });

  test('the same twice is kept twice, and appends at the same time all count', async () => {
    const same = [record({ id: 'same', at: AT, project: 'crowd' })];
    await Promise.all(Array.from({ length: 4 }, () => store.append(batches('storage', same, same))));
    expect(await countOf('storage', 'crowd')).toBe(8);
  });

  test('batches that throw in the middle leave nothing, and their error is passed on', async () => {
    const breaking = async function* () {
      yield* batches('postgres', several(1, 'torn'), several(1, 'torn'));
      throw new Error('the sender broke off');
    };
    await expect(store.append(breaking())).rejects.toThrow('the sender broke off');
    expect(await countOf('postgres', 'torn')).toBe(0);
  });

  test('text of every Unicode plane, U+0000 and every control character come back to the letter', async () => {
    const planes = Array.from({ length: 17 }, (_, plane) =>
      [0x00e9, 0x4e00, 0xfffd, 0xffff].map(low => String.fromCodePoint(plane * 0x10000 + low)).join(''),
    ).join('');
    const controls = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).join('');
    const all = `\0${planes}${controls}"\\u0000"\\N'\\'\u2028\u2029\ufeff\0`;
    const sent = edgeRecord({
      ...{ id: all, at: AT, project: all, message: all, url: all, path: all },
      metadata: { [all]: all, nested: [all] },
    });
    await store.append(batches('edge', [sent]));
    const sql = `select id, project, event_message, url, path, metadata from edge_logs where id = ${text('id')}`;
    const rows = await rowsOf(sql, [], { id: { type: 'text', value: all } });
    expect(rows).toEqual([[all, all, all, all, all, sent.metadata]]);
  });

  test.each([
    '',
    ' ',
    ' a ',
    '"',
    '""',
    '"a"',
    "'",
    '\\',
    '\\N',
    '\\n',
    'NULL',
    'null',
    'j',
    ',',
    '#',
    '{}',
    'é\u2028',
  ])('the text %j means nothing but itself', async each => {
    const sent = edgeRecord({
      ...{ id: `means ${each}`, at: AT, project: `${each}.`, message: each, url: each, path: each },
      metadata: { each },
    });
    await store.append(batches('edge', [sent]));
    const sql = `select id, project, event_message, url, path, metadata from edge_logs where id = ${text('id')}`;
    const rows = await rowsOf(sql, [], { id: { type: 'text', value: sent.id } });
    expect(rows).toEqual([[sent.id, sent.project, each, each, each, sent.metadata]]);
  });

  test('a record close to 1 MiB fits', async () => {
    const message = 'x'.repeat(1_000_000);
    await store.append(batches('rest', [record({ at: AT, project: 'large', message })]));
    expect(await rowsOf("select event_message from rest_logs where project = 'large'")).toEqual([[message]]);
  });
});

describe('folding', () => {
  test('records can be seen at once, and those that are given again are passed over, in whole and in part', async () => {
    await store.apply(spooled(0, 'realtime', several(3, 'again')));
    expect(await countOf('realtime', 'again')).toBe(3);
    await store.apply(spooled(0, 'realtime', several(3, 'again')));
    await store.apply(spooled(1, 'realtime', several(4, 'again', 1)));
    expect(await countOf('realtime', 'again')).toBe(5);
  });

  test('records after a gap are taken; kinds are numbered apart; what is settled is told', async () => {
    await store.apply(spooled(100, 'pooler', several(2, 'gap')));
    await store.apply(spooled(102, 'pooler', several(2, 'gap', 2)));
    await store.flush(['pooler']);
    expect(await countOf('pooler', 'gap')).toBe(4);
    expect([store.flushedUpTo('pooler'), store.flushedUpTo('rest')]).toEqual([104, 0]);
  });

  test('after opening again, what was settled is passed over and what was not is taken', async () => {
    await store.apply(spooled(0, 'function', several(10, 'reopened')));
    await store.flush(['function']);
    await store.close();
    store = await openStore(options);
    expect(store.flushedUpTo('function')).toBe(10);
    await store.apply(spooled(5, 'function', several(10, 'reopened', 5)));
    expect(await countOf('function', 'reopened')).toBe(15);
  });
});

describe('asking', () => {
  test.each([
    [2, 2, true],
    [3, 3, false],
    [4, 3, false],
  ])('of three rows, a limit of %i keeps %i; that rows were cut is told: %s', async (maxRows, kept, cut) => {
    const sql = 'select 1 union all select 2 union all select 3';
    const result = await store.query(savedQuery(sql, ['integer'], maxRows), {});
    expect([result.rows.length, result.truncated]).toEqual([kept, cut]);
  });

  test('an integer that no double holds, a fraction, a great number and nothing are told apart', async () => {
    const sql = 'select 9007199254740993, cast(0.5 as double), 1e25, null';
    const [row] = await rowsOf(sql, ['integer', 'number', 'number', 'integer']);
    expect(row).toEqual([9_007_199_254_740_993n, 0.5, 1e25, null]);
  });

  test('the newest record is known, up to a moment and of one project', async () => {
    const [early, late] = ['2026-11-14T10:00:00.000001Z', '2026-11-14T11:59:59.999999Z'];
    await store.append(
      batches('postgres', [
        record({ at: early, project: 'old' }),
        record({ at: late, project: 'new' }),
        record({ at: '2026-11-14T13:00:00Z', project: 'old' }),
      ]),
    );
    const noon = micros('2026-11-14T12:00:00Z');
    expect(await store.newest('postgres', noon)).toBe(micros(late));
    expect(await store.newest('postgres', noon, 'old')).toBe(micros(early));
    expect(await store.newest('postgres', noon, 'nobody')).toBeUndefined();
  });

  test.each([
    ['(', /^missing \): \($/],
    ['a**', /bad repetition operator/],
    ['[z-a]', /invalid character class range/],
    ['(?<!a)b', /invalid perl operator|invalid named capture/],
    ['\\1', /invalid escape sequence/],
  ])('the pattern %s is refused in the words of RE2', async (pattern, fault) => {
    expect(await store.validatePattern(pattern)).toMatch(fault);
  });

  test.each(['a', '', '.*', "it's", '(?i)a|b', '\\d+$', 'é🦕'])('the pattern %s is fine', async pattern => {
    expect(await store.validatePattern(pattern)).toBeUndefined();
  });
});

describe('saved queries are checked', () => {
  const faultOf = (sql: string, types: readonly ColumnType[] = ['integer']) =>
    store.validateQuery(savedQuery(sql, types), { project: { type: 'text', value: 'sample' } });

  test('one SELECT with the declared columns is fine', async () => {
    expect(await faultOf(`select 1 as column_0 where '' = ${text('project')} -- the end`)).toBeUndefined();
  });

  test.each([
    ['', /holds no statement/],
    ['-- nothing but a comment', /holds no statement/],
    ['select 1 as column_0; select 2 as column_0', /2 statements|refused by ClickHouse/],
    ['create table evil (a integer)', /is not a SELECT/],
    ["insert into auth_logs values ('a')", /is not a SELECT/],
    ['drop table auth_logs', /is not a SELECT/],
    ['select 1 as other', /returns the columns other, but column_0 are declared/],
    ["select 'a' as column_0", /which is not a valid type for integer/],
    ['select a as column_0 from nowhere', /refused by/],
  ])('%s', async (sql, fault) => {
    expect(await faultOf(sql)).toMatch(fault);
  });

  test('a parameter that is not declared is named', async () => {
    expect(await faultOf(`select 1 as column_0 where '' = ${text('other')}`)).toMatch(
      /uses .?other.?.*project/,
    );
  });

  test('a query that would write is refused when it is run, too', async () => {
    await expect(rowsOf('drop table auth_logs')).rejects.toThrow();
    expect(await countOf('auth', 'empty')).toBe(1);
  });
});

describe('limits', () => {
  test('a caller who leaves ends the query in the store, and the next one is answered', async () => {
    const leaving = new AbortController();
    const asked = store.query(endless(), {}, { signal: leaving.signal });
    setTimeout(() => leaving.abort(new Error('left')), 300);
    await expect(asked).rejects.toThrow('left');
    expect(await rowsOf('select 42', ['integer'])).toEqual([[42]]);
  });

  test('a query past its time limit is cancelled in the store, and says so', async () => {
    const folder = makeDataFolder();
    const hasty = await openStore({ ...options, dataDirectory: folder, queryTimeoutSeconds: 1 });
    await expect(hasty.query(endless(), {})).rejects.toMatchObject({ code: 'query_timeout' });
    await hasty.close();
    removeDataFolder(folder);
    expect(await rowsOf('select 42', ['integer'])).toEqual([[42]]);
  });

  test('past the queue a query is refused at once', async () => {
    const folder = makeDataFolder();
    const narrow = { ...options, dataDirectory: folder, queryConcurrency: 1, queryQueueLength: 1 };
    const small = await openStore(narrow);
    const leaving = new AbortController();
    const running = [1, 2].map(() => small.query(endless(), {}, { signal: leaving.signal }).catch(() => {}));
    await expect(small.query(endless(), {})).rejects.toMatchObject({ code: 'unavailable' });
    leaving.abort();
    await Promise.all(running);
    await small.close();
    removeDataFolder(folder);
  });
});

describe('closing', () => {
  test('twice is fine, and afterwards queries and records are refused as unavailable', async () => {
    await Promise.all([store.close(), store.close()]);
    await expect(rowsOf('select 1')).rejects.toMatchObject({ code: 'unavailable' });
    const appended = store.append(batches('auth', several(1, 'late')));
    await expect(appended).rejects.toMatchObject({ code: 'unavailable' });
    await expect(store.apply(spooled(0, 'auth', several(1, 'late')))).rejects.toMatchObject({
      code: 'unavailable',
    });
  });
});
