import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { DuckDBInstance, type DuckDBPreparedStatement } from '../../src/store/duckdb/driver.ts';
import type { ColumnType } from '../../src/store/store.ts';
import { micros } from '../support/app.ts';
import { functionEdgeRecord } from '../support/record.ts';
import { openTestStore, type TestStore } from '../support/store.ts';

// DuckDB plans a query with the statistics of the rows at that time: bounds of numbers and times, lengths of texts, emptiness.
// An old plan compares, packs and groups later rows wrongly. So each test runs a query, applies rows that exceed these
// statistics, and runs the query again on the same connection.
describe('a query that runs again on a memtable that has grown', () => {
  let opened: TestStore;
  beforeEach(async () => {
    opened = await openTestStore({ queryConcurrency: 1 });
  });
  afterEach(() => opened.close());

  const FIRST = [
    functionEdgeRecord({ id: 'a', at: '2026-11-14T12:00:00Z', functionId: 'f', status: 200, ms: null }),
    functionEdgeRecord({ id: 'b', at: '2026-11-14T12:00:01Z', functionId: 'f', status: 201, ms: null }),
  ];
  const LATER = [
    functionEdgeRecord({
      id: 'c, a longer id',
      at: '2020-01-01T00:00:00Z',
      functionId: 'f',
      status: 100_000,
      ms: 1.5,
    }),
    functionEdgeRecord({
      id: 'd',
      at: '2026-12-01T00:00:00Z',
      functionId: 'another function',
      status: 404,
      ms: 2,
    }),
  ];
  const old = micros('2020-01-01T00:00:00Z');

  const QUERIES: readonly [name: string, sql: string, types: ColumnType[], expected: unknown[][]][] = [
    [
      'a comparison with a number beyond the bounds',
      'select id from function_edge_logs where status_code >= 400 order by id',
      ['text'],
      [['c, a longer id'], ['d']],
    ],
    [
      'a comparison with a time beyond the bounds',
      "select id from function_edge_logs where timestamp < timestamp '2021-01-01'",
      ['text'],
      [['c, a longer id']],
    ],
    [
      'a comparison with a text beyond the bounds',
      "select id from function_edge_logs where function_id = 'another function'",
      ['text'],
      [['d']],
    ],
    [
      'a filter on values that are not null, where all were null,',
      'select id from function_edge_logs where execution_time_ms is not null order by id',
      ['text'],
      [['c, a longer id'], ['d']],
    ],
    [
      'grouping by a number',
      'select status_code, count(*) from function_edge_logs group by 1 order by 1',
      ['integer', 'integer'],
      [
        [200, 1],
        [201, 1],
        [404, 1],
        [100_000, 1],
      ],
    ],
    [
      'grouping by a text',
      'select function_id, max(status_code) from function_edge_logs group by 1 order by 1',
      ['text', 'integer'],
      [
        ['another function', 404],
        ['f', 100_000],
      ],
    ],
    [
      'sorting without a limit',
      'select id, timestamp, status_code from function_edge_logs order by timestamp, id',
      ['text', 'unix_microseconds', 'integer'],
      [
        ['c, a longer id', old, 100_000],
        ['a', micros('2026-11-14T12:00:00Z'), 200],
        ['b', micros('2026-11-14T12:00:01Z'), 201],
        ['d', micros('2026-12-01T00:00:00Z'), 404],
      ],
    ],
    [
      'a selection of distinct rows',
      'select distinct function_id, status_code from function_edge_logs order by all',
      ['text', 'integer'],
      [
        ['another function', 404],
        ['f', 200],
        ['f', 201],
        ['f', 100_000],
      ],
    ],
  ];

  const apply = (first: number, records: readonly LogRecord[]) =>
    opened.store.apply({ ...toLogLines('function_edge', records), firstSequence: first });

  test.each(QUERIES)('%s returns the rows of both batches', async (_, sql, types, expected) => {
    await apply(0, FIRST);
    await opened.rowsOf(sql, types);
    await apply(2, LATER);
    expect(await opened.rowsOf(sql, types)).toEqual(expected);
  });

  test.each(QUERIES)(
    '%s returns all rows if some arrive between its preparation and its run',
    async (_, sql, types, expected) => {
      await apply(0, FIRST);
      const instance = await DuckDBInstance.create(':memory:');
      const statement = await (await instance.connect()).prepare('select 1');
      const prototype = Object.getPrototypeOf(statement) as DuckDBPreparedStatement;
      const { stream } = prototype;
      vi.spyOn(prototype, 'stream').mockImplementationOnce(async function (this: DuckDBPreparedStatement) {
        await apply(2, LATER);
        return stream.call(this);
      });
      try {
        expect(await opened.rowsOf(sql, types)).toEqual(expected);
      } finally {
        vi.restoreAllMocks();
        instance.closeSync();
      }
    },
  );

  test('a query with another value of its parameter returns the rows for that value', async () => {
    await apply(0, FIRST);
    const sql = 'select id from function_edge_logs where $id is null or id = $id order by id';
    for (const [value, expected] of [
      ['a', [['a']]],
      [null, [['a'], ['b']]],
      ['b', [['b']]],
    ] as const)
      expect(await opened.rowsOf(sql, ['text'], { id: { type: 'text', value } })).toEqual(expected);
  });
});
