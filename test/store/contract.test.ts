import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import type { ColumnType, SpooledLines, Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { isOnClickHouse, storeOverrides } from '../support/clickhouse.ts';
import { edgeRecord, functionEdgeRecord, record } from '../support/record.ts';
import { batches, createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';

// The contract of every store. `npm test` runs this on DuckDB, `npm run test:clickhouse` on ClickHouse.

const AT = '2026-11-14T12:34:56.789012Z';

/** A text parameter in the SQL of the store. */
const text = (name: string) => (isOnClickHouse() ? `{${name}:String}` : `$${name}`);
/** Takes hours, so it ends only if it is cancelled. */
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
  dataDirectory = createDataDirectory();
  options = { ...testStoreOptions(dataDirectory), ...(await storeOverrides()) };
  store = await openStore(options);
});
afterAll(async () => {
  await store.close();
  removeDataDirectory(dataDirectory);
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

describe('append', () => {
  test.each(LOG_KINDS)(
    'append stores records of the kind %s, with timestamps in microseconds',
    async kind => {
      const draft = { id: kind, at: AT, project: 'kinds' };
      const create = { edge: edgeRecord, function_edge: functionEdgeRecord }[kind as 'edge'] ?? record;
      await store.append(batches(kind, [create(draft)]));
      expect(
        await rowsOf(
          `select id, timestamp, project, event_message, metadata from ${kind}_logs where project = 'kinds'`,
          ['text', 'unix_microseconds', 'text', 'text', 'json'],
        ),
      ).toEqual([[kind, micros(AT), 'kinds', 'something happened', '{}']]);
    },
  );

  test('append stores the columns extracted from the metadata, and missing values as null', async () => {
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

  test('apply computes the columns of searchable fields, in kinds without objects too', async () => {
    const metadata = {
      status: '200',
      method: 'GET',
      path: '/token?grant_type=password',
      level: 'INFO',
      host: ['h'],
    };
    await store.apply(spooled(0, 'auth', [record({ at: AT, project: 'fields', metadata })]));
    const columns = 'field_status, field_method, field_path, field_host, field_level';
    expect(await rowsOf(`select ${columns} from auth_logs where project = 'fields'`)).toEqual([
      ['200', 'GET', '/token', null, 'INFO'],
    ]);
  });

  test('append computes the columns of searchable fields of a record of 1 MiB', async () => {
    const long = 'x'.repeat(500_000);
    const metadata = { req: [{ method: long }], request: { body: long } };
    await store.append(batches('storage', [record({ at: AT, project: 'long', metadata })]));
    const sql = "select length(field_method) from storage_logs where project = 'long'";
    expect(await rowsOf(sql, ['integer'])).toEqual([[500_000]]);
  });

  test('append stores a number with 15 digits', async () => {
    // ClickHouse parses numbers in JSON with a fast algorithm that can be off by one in the last place of a double.
    const sent = [5.12350942163366e-98, 0.1, 0.3, 1234.5678, 123456.789012345, 1e15];
    await store.append(
      batches(
        'function_edge',
        sent.map(ms => functionEdgeRecord({ at: AT, project: 'digits', ms })),
      ),
    );
    const sql =
      "select execution_time_ms from function_edge_logs where project = 'digits' order by execution_time_ms";
    const stored = (await rowsOf(sql, ['number'])).map(([ms]) => Number(Number(ms).toPrecision(15)));
    expect(stored).toEqual(sent);
  });

  test('append stores repeated records every time, also of concurrent appends', async () => {
    const same = [record({ id: 'same', at: AT, project: 'crowd' })];
    await Promise.all(Array.from({ length: 4 }, () => store.append(batches('storage', same, same))));
    expect(await countOf('storage', 'crowd')).toBe(8);
  });

  test('append stores nothing if the batches throw, and throws their error', async () => {
    const failing = async function* () {
      yield* batches('postgres', several(1, 'torn'), several(1, 'torn'));
      throw new Error('the sender disconnected');
    };
    await expect(store.append(failing())).rejects.toThrow('the sender disconnected');
    expect(await countOf('postgres', 'torn')).toBe(0);
  });

  test('every text is returned unchanged', async () => {
    const special = ['', ' a ', '"a"', ..."' \\ \\N \\n NULL null j , # {} \u2028 \ufeff".split(' ')];
    const controls = Array.from({ length: 0xa0 }, (_, code) => String.fromCharCode(code)).join('');
    const random = fc.sample(fc.string({ unit: 'binary', maxLength: 40 }), 200);
    const texts = [...special, controls, '\ufeffa text of more than 12 bytes', ...random];
    const sent = texts.map((each, index) =>
      edgeRecord({
        ...{ id: `${index} ${each}`, at: AT, project: `texts ${each}`, message: each, url: each, path: each },
        metadata: { each, [each]: [each] },
      }),
    );
    await store.append(batches('edge', sent));
    const sql = `select id, project, event_message, url, path, metadata from edge_logs
      where project like 'texts %' order by cast(split_part(id, ' ', 1) as integer)`;
    const onClickHouse = sql.replace(/cast.*$/, "toInt64(splitByChar(' ', id)[1])");
    const rows = await rowsOf(isOnClickHouse() ? onClickHouse : sql);
    expect(rows).toEqual(
      sent.map(({ id, project, eventMessage: text, metadata }) => [id, project, text, text, text, metadata]),
    );
  });
});

describe('apply', () => {
  test('apply makes records visible, and skips those that were applied before', async () => {
    await store.apply(spooled(0, 'realtime', several(3, 'again')));
    expect(await countOf('realtime', 'again')).toBe(3);
    await store.apply(spooled(0, 'realtime', several(3, 'again')));
    await store.apply(spooled(1, 'realtime', several(4, 'again', 1)));
    expect(await countOf('realtime', 'again')).toBe(5);
  });

  test('apply accepts a gap in the sequence numbers, and counts those of each kind separately', async () => {
    await store.apply(spooled(100, 'pooler', several(2, 'gap')));
    await store.apply(spooled(102, 'pooler', several(2, 'gap', 2)));
    await store.flush(['pooler']);
    expect(await countOf('pooler', 'gap')).toBe(4);
    expect([store.flushedUpTo('pooler'), store.flushedUpTo('rest')]).toEqual([104, 0]);
  });

  test('apply skips flushed records after the store is opened again, and stores the others', async () => {
    await store.apply(spooled(0, 'function', several(10, 'reopened')));
    await store.flush(['function']);
    await store.close();
    store = await openStore(options);
    expect(store.flushedUpTo('function')).toBe(10);
    await store.apply(spooled(5, 'function', several(10, 'reopened', 5)));
    expect(await countOf('function', 'reopened')).toBe(15);
  });
});

describe('eraseProject', () => {
  const EARLIER = '2026-11-14T11:00:00Z';
  const create = (project: string) => [
    record({ id: `${project}-early`, at: EARLIER, project }),
    record({ id: `${project}-late`, at: AT, project }),
  ];
  const idsOf = async (kind: LogKind) =>
    (await rowsOf(`select id from ${kind}_logs where project like 'erase%' order by id`, ['text'])).flat();

  test('eraseProject erases the records of one project of every kind, and later ones are stored', async () => {
    for (const kind of ['auth', 'rest'] as const)
      await store.append(batches(kind, [...create("erase'd"), ...create('erase-not')]));
    expect(await store.eraseProject({ project: "erase'd" })).toBe(4);
    for (const kind of ['auth', 'rest'] as const)
      expect(await idsOf(kind)).toEqual(['erase-not-early', 'erase-not-late']);
    expect(await store.newestTimestamp('auth', micros(AT), "erase'd")).toBeUndefined();
    expect(await store.newestTimestamp('auth', micros(AT), 'erase-not')).toBe(micros(AT));
    expect(await store.eraseProject({ project: "erase'd" })).toBe(0);
    await store.append(batches('auth', create("erase'd")));
    expect(await idsOf('auth')).toHaveLength(4);
  });

  test('eraseProject with a time erases only earlier records', async () => {
    await store.append(batches('pooler', create('erase-some')));
    expect(await store.eraseProject({ project: 'erase-some', beforeMicros: micros(EARLIER) })).toBe(0);
    expect(await store.eraseProject({ project: 'erase-some', beforeMicros: micros(EARLIER) + 1n })).toBe(1);
    expect(await idsOf('pooler')).toEqual(['erase-some-late']);
  });
});

describe('query', () => {
  test.each([
    [2, undefined, 2, { truncated: true }],
    [3, undefined, 3, { truncated: false }],
    [4, undefined, 3, { truncated: false }],
    [10, 5, 2, { truncated: false, exceedsMaxBytes: true }],
    [10, 6, 3, { truncated: false, exceedsMaxBytes: false }],
    [10, 1, 0, { truncated: false, exceedsMaxBytes: true }],
    [2, 5, 2, { truncated: true, exceedsMaxBytes: false }], // the row after maxRows is the one that exceeds maxBytes
  ])(
    'a query with three texts of two characters, maxRows %i and maxBytes %s returns %i rows, %j',
    async (maxRows, maxBytes, returned, expected) => {
      const sql = "select 'aa' union all select 'bb' union all select 'cc'";
      const result = await store.query(savedQuery(sql, ['text'], maxRows), {}, { maxBytes });
      expect(result).toMatchObject(expected);
      expect(result.rows).toHaveLength(returned);
    },
  );

  test('query returns an integer that a double cannot represent, a fraction, a large number and null', async () => {
    const sql = 'select 9007199254740993, cast(0.5 as double), 1e25, null';
    const [row] = await rowsOf(sql, ['integer', 'number', 'number', 'integer']);
    expect(row).toEqual([9_007_199_254_740_993n, 0.5, 1e25, null]);
  });

  test('newestTimestamp returns the newest timestamp that is not after a given time, of all projects or of one', async () => {
    const [early, late] = ['2026-11-14T10:00:00.000001Z', '2026-11-14T11:59:59.999999Z'];
    await store.append(
      batches('postgres', [
        record({ at: early, project: 'old' }),
        record({ at: late, project: 'new' }),
        record({ at: '2026-11-14T13:00:00Z', project: 'old' }),
      ]),
    );
    const noon = micros('2026-11-14T12:00:00Z');
    expect(await store.newestTimestamp('postgres', noon)).toBe(micros(late));
    expect(await store.newestTimestamp('postgres', noon, 'old')).toBe(micros(early));
    expect(await store.newestTimestamp('postgres', noon, 'nobody')).toBeUndefined();
  });

  test.each([
    ['(', /^missing \): \($/],
    ['a**', /bad repetition operator/],
    ['[z-a]', /invalid character class range/],
    ['(?<!a)b', /invalid perl operator|invalid named capture/],
    ['\\1', /invalid escape sequence/],
  ])('validatePattern rejects %s in the words of RE2', async (pattern, problem) => {
    expect(await store.validatePattern(pattern)).toMatch(problem);
  });

  test.each(['a', '', '.*', "it's", '(?i)a|b', '\\d+$', 'é🦕'])(
    'validatePattern accepts %j',
    async pattern => {
      expect(await store.validatePattern(pattern)).toBeUndefined();
    },
  );
});

/** What it does, and the text after FROM for DuckDB and for ClickHouse. */
const FORBIDDEN_FUNCTIONS: readonly [name: string, duckdb: string, clickhouse: string][] = [
  ['reads a file', "read_text('/etc/hostname')", "file('hostname', 'LineAsString')"],
  [
    'reads from the network',
    "read_csv('http://127.0.0.1:9/x')",
    "url('http://127.0.0.1:9/x', CSV, 'a String')",
  ],
  ['reads another server', "glob('x')", "remote('127.0.0.1:9', system.one)"],
  ['is in a subquery', '(from (from duckdb_settings()))', "(select * from s3('http://127.0.0.1:9/x'))"],
  [
    'is on the right side of IN',
    'edge_logs where 1 in (from checkpoint())',
    "edge_logs where id in url('http://127.0.0.1:9/x', CSV, 'a String')",
  ],
  [
    'is not a table function',
    'edge_logs where setseed(0.1) is null',
    "edge_logs where file('hostname') = ''",
  ],
];

describe('validateQuery', () => {
  const findProblem = (sql: string, types: readonly ColumnType[] = ['integer']) =>
    store.validateQuery(savedQuery(sql, types), { sample: { project: { type: 'text', value: 'sample' } } });

  test('validateQuery accepts one SELECT with the declared columns', async () => {
    expect(
      await findProblem(`select 1 as column_0 where '' = ${text('project')} -- the end`),
    ).toBeUndefined();
  });

  test('validateQuery and query accept the marks of comments and parameters in a string literal', async () => {
    const sql = `select 1 as column_0 where '-- it''s /* ${text('other')}' <> ${text('project')}`;
    expect(await findProblem(sql)).toBeUndefined();
    const { rows } = await store.query(savedQuery(sql, ['integer']), {
      project: { type: 'text', value: '' },
    });
    expect(rows).toEqual([[1]]);
  });

  test.each([
    ['', /holds no statement/],
    ['-- nothing but a comment', /holds no statement/],
    ['select 1 as column_0; select 2 as column_0', /2 statements|ClickHouse rejects it:/],
    ['create table evil (a integer)', /is not a SELECT/],
    ["insert into auth_logs values ('a')", /is not a SELECT/],
    ['drop table auth_logs', /is not a SELECT/],
    ['select 1 as other', /returns the columns other, but column_0 are declared/],
    ["select 'a' as column_0", /which is not a valid type for integer/],
    [
      'select a as column_0 from nowhere',
      /ClickHouse rejects it( at line 1)?: |reads the table nowhere, which is not allowed/,
    ],
  ])('validateQuery rejects %j', async (sql, problem) => {
    expect(await findProblem(sql)).toMatch(problem);
  });

  test.each(FORBIDDEN_FUNCTIONS.map(([name, duckdb, clickhouse]) => [name, { duckdb, clickhouse }] as const))(
    'validateQuery rejects a function that %s, and names it',
    async (_, sql) => {
      const chosen = isOnClickHouse() ? sql.clickhouse : sql.duckdb;
      const name = /(\w+)\(/.exec(chosen)?.[1];
      expect(await findProblem(`select count(*) as column_0 from ${chosen}`)).toContain(
        `function ${name}, which is not allowed`,
      );
    },
  );

  test('validateQuery accepts table functions that only return rows from their arguments', async () => {
    const numbers = isOnClickHouse() ? 'numbers(3)' : 'range(3)';
    expect(await findProblem(`select count(*) as column_0 from ${numbers}`)).toBeUndefined();
  });

  test('validateQuery names a parameter that is not declared', async () => {
    expect(await findProblem(`select 1 as column_0 where '' = ${text('other')}`)).toMatch(
      /uses .?other.?.*project/,
    );
  });

  test('a query that writes fails when it is run without validation', async () => {
    await expect(rowsOf('drop table auth_logs')).rejects.toThrow();
    expect(await countOf('storage', 'crowd')).toBe(8);
  });
});

describe('query', () => {
  test.each([
    ['an empty list', []],
    ['a list of texts', ['plain', "o'clock", 'a,b', '🦕', '\\']],
  ])('binds %s', async (_, value) => {
    const sql = isOnClickHouse()
      ? "select length({list:Array(String)}), arrayStringConcat({list:Array(String)}, '|')"
      : "select len($list), coalesce(array_to_string($list, '|'), '')";
    const rows = await rowsOf(sql, ['integer', 'text'], { list: { type: 'texts', value } });
    expect(rows).toEqual([[value.length, value.join('|')]]);
  });
});

describe('the limits of queries', () => {
  test('an aborted query is cancelled in the store, and the next one succeeds', async () => {
    const controller = new AbortController();
    const running = store.query(endless(), {}, { signal: controller.signal });
    setTimeout(() => controller.abort(new Error('left')), 300);
    await expect(running).rejects.toThrow('left');
    expect(await rowsOf('select 42', ['integer'])).toEqual([[42]]);
  });

  test('a query that exceeds the time limit is cancelled in the store and throws query_timeout', async () => {
    const directory = createDataDirectory();
    const impatient = await openStore({ ...options, dataDirectory: directory, queryTimeoutSeconds: 1 });
    await expect(impatient.query(endless(), {})).rejects.toMatchObject({ code: 'query_timeout' });
    await impatient.close();
    removeDataDirectory(directory);
    expect(await rowsOf('select 42', ['integer'])).toEqual([[42]]);
  });

  test('a query fails as unavailable at once if the queue is full', async () => {
    const directory = createDataDirectory();
    const limited = { ...options, dataDirectory: directory, queryConcurrency: 1, queryQueueLength: 1 };
    const small = await openStore(limited);
    const controller = new AbortController();
    const running = [1, 2].map(() =>
      small.query(endless(), {}, { signal: controller.signal }).catch(() => {}),
    );
    await expect(small.query(endless(), {})).rejects.toMatchObject({ code: 'unavailable' });
    controller.abort();
    await Promise.all(running);
    await small.close();
    removeDataDirectory(directory);
  });
});

describe('close', () => {
  test('close can be called twice, and later queries and records fail as unavailable', async () => {
    await Promise.all([store.close(), store.close()]);
    await expect(rowsOf('select 1')).rejects.toMatchObject({ code: 'unavailable' });
    const appended = store.append(batches('auth', several(1, 'late')));
    await expect(appended).rejects.toMatchObject({ code: 'unavailable' });
    await expect(store.apply(spooled(0, 'auth', several(1, 'late')))).rejects.toMatchObject({
      code: 'unavailable',
    });
  });
});
