import { describe, expect, test } from 'vitest';
import { encodeRows, type ResultFormat, type RowEncoding } from '../../src/endpoint/encode-rows.ts';
import { EndpointResult } from '../../src/endpoint/endpoint-result.ts';
import type { Cell, Column } from '../../src/store/store.ts';

const TEXT: Column[] = [{ name: 'text', type: 'text' }];
const FORMATS: ResultFormat[] = ['json', 'ndjson', 'csv', 'csv-raw'];

const encode = async (
  columns: readonly Column[],
  rows: readonly (readonly Cell[])[],
  encoding: Partial<RowEncoding> = {},
  maxBytes?: number,
) => {
  const { body, isCut } = await encodeRows(
    columns,
    rows,
    { format: 'json', isoTimestamps: false, ...encoding },
    maxBytes,
  );
  return { text: body.toString(), bytes: body.length, isCut };
};

describe('the byte limit', () => {
  test.each(FORMATS)('cuts %s exactly at the last row that fits', async format => {
    const rows = Array.from({ length: 40 }, (_, i): Cell[] => [`é🌲${i}${'x'.repeat(i)}`]);
    const sizes = await Promise.all(
      rows.map(async (_, count) => (await encode(TEXT, rows.slice(0, count), { format })).bytes),
    );
    for (const [count, size] of sizes.entries()) {
      if (count === 0) continue;
      expect(await encode(TEXT, rows, { format }, size)).toMatchObject({ bytes: size, isCut: true });
      expect((await encode(TEXT, rows, { format }, size - 1)).bytes).toBe(sizes[count - 1]);
    }
  });

  test('a result that fits exactly is not cut', async () => {
    const rows: Cell[][] = [['a'], ['b']];
    const { bytes, text } = await encode(TEXT, rows);
    expect(await encode(TEXT, rows, {}, bytes)).toEqual({ bytes, text, isCut: false });
  });

  test('a first row that does not fit gives an empty result', async () => {
    const rows = [['x'.repeat(1000)], ['small']];
    expect(await encode(TEXT, rows, {}, 100)).toEqual({ text: '{"result":[]}', bytes: 13, isCut: true });
  });

  test('rows of many slices give the same bytes as one string', async () => {
    const rows = Array.from({ length: 300 }, (_, i): Cell[] => [`${i} é ${'y'.repeat(2000)}`]);
    const { text } = await encode(TEXT, rows);
    expect(text).toBe(JSON.stringify({ result: rows.map(([cell]) => ({ text: cell })) }));
  });
});

test('encoding a large result lets other work run in between', async () => {
  const rows = Array.from({ length: 64 }, (): Cell[] => ['\u0001'.repeat(100_000)]);
  const result = new EndpointResult(
    TEXT,
    { rows, truncated: false, exceedsMaxBytes: false, queuedMs: 0, executedMs: 0 },
    { dataThrough: undefined, clipped: [], missingParts: 0 },
  );
  let turns = 0;
  const count = () => {
    turns++;
    running = setImmediate(count);
  };
  let running = setImmediate(count);
  const request = {
    format: 'json',
    isoTimestamps: false,
    contentCoding: 'identity',
    redacted: true,
  } as const;
  const { body } = await result.encode(request);
  clearImmediate(running);
  expect(body.length).toBeGreaterThan(64 * 600_000);
  expect(turns).toBeGreaterThanOrEqual(64); // one for each row, and some for the hash
});

describe('timestamps', () => {
  const columns: Column[] = [
    { name: 'micros', type: 'unix_microseconds' },
    { name: 'datetime', type: 'utc_datetime' },
    { name: 'count', type: 'integer' },
  ];
  const rows: Cell[][] = [
    [1_763_123_696_789_012n, 1_763_123_696_000_000n, 1_763_123_696_789_012],
    [null, null, null],
  ];

  test.each([
    [
      'json',
      '{"result":[{"micros":"2025-11-14T12:34:56.789012Z","datetime":"2025-11-14T12:34:56Z","count":1763123696789012},{"micros":null,"datetime":null,"count":null}]}',
    ],
    [
      'ndjson',
      '{"micros":"2025-11-14T12:34:56.789012Z","datetime":"2025-11-14T12:34:56Z","count":1763123696789012}\n{"micros":null,"datetime":null,"count":null}\n',
    ],
    [
      'csv',
      'micros,datetime,count\r\n2025-11-14T12:34:56.789012Z,2025-11-14T12:34:56Z,1763123696789012\r\n,,\r\n',
    ],
  ] as const)('are ISO 8601 strings in %s if isoTimestamps is set', async (format, expected) => {
    expect((await encode(columns, rows, { format, isoTimestamps: true })).text).toBe(expected);
  });

  test('without an ISO 8601 form, such as infinity in DuckDB, are null', async () => {
    const infinite: Cell[][] = [[2n ** 63n - 1n, -(2n ** 63n - 1n), 0]];
    expect((await encode(columns, infinite, { isoTimestamps: true })).text).toBe(
      '{"result":[{"micros":null,"datetime":null,"count":0}]}',
    );
  });
});

test('CSV leaves numbers and timestamps unchanged, also negative ones', async () => {
  const columns: Column[] = [
    { name: 'integer', type: 'integer' },
    { name: 'number', type: 'number' },
    { name: 'micros', type: 'unix_microseconds' },
    { name: 'text', type: 'text' },
  ];
  expect((await encode(columns, [[-5, -0.5, -1n, '-5']], { format: 'csv' })).text).toBe(
    "integer,number,micros,text\r\n-5,-0.5,-1,'-5\r\n",
  );
});
