import { copyFile, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import { stringifyExactJson } from '../../src/logs/exact-json.ts';
import type { ReadOptions, ReadProgress } from '../../src/logs/read-file.ts';
import { isRejection, toRecord } from '../../src/logs/record.ts';
import { readAll } from './read-chunks.ts';
import { CONTEXT, NOW } from './validate-record.ts';

const { TZ } = process.env;
let directory = '';
let instance: DuckDBInstance;
let connection: DuckDBConnection;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'dendro-read-parquet-'));
  // Shows whether the reader depends on the time zone of the machine.
  process.env['TZ'] = 'Asia/Tokyo';
  instance = await DuckDBInstance.create(':memory:');
  connection = await instance.connect();
});
afterAll(async () => {
  if (TZ === undefined) delete process.env['TZ'];
  else process.env['TZ'] = TZ;
  instance.closeSync();
  await rm(directory, { recursive: true });
});

let files = 0;
async function save(select: string): Promise<string> {
  const path = join(directory, `${files++}.parquet`);
  await connection.run(`COPY (${select}) TO '${path}' (FORMAT parquet)`);
  return path;
}

const readJson = async (select: string): Promise<string[]> =>
  (await readAll(await save(select))).map(value => stringifyExactJson(value));

async function readError(path: string, options?: ReadOptions): Promise<string> {
  const error = await readAll(path, options).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OperatorError);
  expect((error as Error).message).not.toContain('\n');
  return (error as Error).message;
}

describe('rows of a Parquet file', () => {
  const readTimestamp = async (sql: string) => {
    const [value] = await readAll(await save(`SELECT ${sql} AS timestamp, 'p' AS project, 'm' AS message`));
    return toRecord(value, 'edge', CONTEXT);
  };

  test('each row is one value with a field per column, in the order of the file', async () => {
    const values = await readAll(
      await save("SELECT 'm' || i AS event_message, i AS n FROM range(10000) r(i)"),
    );
    expect(values).toHaveLength(10_000);
    expect(values.every((value, i) => JSON.stringify(value) === `{"event_message":"m${i}","n":${i}}`)).toBe(
      true,
    );
  });

  test('a NULL column is not a field of the row', async () => {
    expect(
      await readJson("SELECT 'm' AS message, NULL::VARCHAR AS id, {'a': NULL, 'b': 1} AS metadata"),
    ).toStrictEqual(['{"message":"m","metadata":{"a":null,"b":1}}']);
  });

  test.each<[timestamp: string, micros?: number]>([
    ["TIMESTAMP '2026-11-14 09:30:00.123456'"],
    ["TIMESTAMPTZ '2026-11-14 15:00:00.123456+05:30'"],
    ["TIMESTAMP_NS '2026-11-14 09:30:00.123456999'"],
    ["'2026-11-14T09:30:00.123456Z'"],
    ["'2026-11-14 09:30:00.123456+00'"],
    ['1794648600123456::BIGINT'],
    ['1794648600123456999::BIGINT'],
    ['1794648600123456::UBIGINT'],
    ["'1794648600123456'"],
    ["TIMESTAMP_S '2026-11-14 09:30:00'", 1_794_648_600_000_000],
    ["TIMESTAMP_MS '2026-11-14 09:30:00.123'", 1_794_648_600_123_000],
    ["DATE '2026-11-14'", 1_794_614_400_000_000],
  ])('a timestamp column of %s is exact', async (timestamp, timestampMicros = NOW) => {
    expect(await readTimestamp(timestamp)).toMatchObject({ timestampMicros });
  });

  test('other names of timestamp and message are read from columns, and the others stay', async () => {
    const columns =
      "'p' AS project, 'm' AS msg, 7 AS ts, TIMESTAMPTZ '2026-11-14 18:30:00.123456+09' AS \"@timestamp\"";
    const [value] = await readAll(await save(`SELECT ${columns}, TIME '09:30:00' AS time`));
    expect(toRecord(value, 'edge', CONTEXT)).toMatchObject({
      timestampMicros: NOW,
      eventMessage: 'm',
      metadata: '{"ts":7,"time":"09:30:00"}',
    });
  });

  test('a timestamp before 1970 is past retention, and an infinite timestamp is invalid', async () => {
    for (const [timestamp = '', code] of [
      ["TIMESTAMPTZ '1969-12-31 23:59:59.5+00'", 'past_retention'],
      ["TIMESTAMP 'infinity'", 'invalid_timestamp'],
      ["DATE '-infinity'", 'invalid_timestamp'],
    ]) {
      const record = await readTimestamp(timestamp);
      expect(isRejection(record) && record.code).toBe(code);
    }
  });

  test('metadata as text that contains a JSON object is parsed', async () => {
    expect(await readJson(`SELECT '{"a":{"n":1794648600123456789}}' AS metadata`)).toStrictEqual([
      '{"metadata":{"a":{"n":1794648600123456789}}}',
    ]);
    expect(await readJson(`SELECT '[{"a":1}]' AS metadata`)).toStrictEqual(['{"metadata":[{"a":1}]}']);
  });

  test.each(['', '7', '{"a":', 'plain', '[1,2]', 'null'])(
    'metadata as the text %j stays text',
    async text => {
      expect(await readJson(`SELECT '${text}' AS metadata`)).toStrictEqual([
        stringifyExactJson({ metadata: text }),
      ]);
    },
  );

  test('metadata as a struct, a map or a JSON column is an object', async () => {
    const object = '{"metadata":{"a":{"b":1}}}';
    expect(await readJson("SELECT {'a': {'b': 1}} AS metadata")).toStrictEqual([object]);
    expect(await readJson("SELECT MAP {'a': MAP {'b': 1}} AS metadata")).toStrictEqual([object]);
    expect(await readJson(`SELECT '{"a":{"b":1}}'::JSON AS metadata`)).toStrictEqual([object]);
  });

  test('JSON text in a column other than metadata stays text', async () => {
    expect(await readJson(`SELECT '{"a":1}' AS event_message`)).toStrictEqual([
      '{"event_message":"{\\"a\\":1}"}',
    ]);
  });

  test('large integers and decimals keep every digit', async () => {
    expect(
      await readJson(
        'SELECT 9007199254740993 AS a, 18446744073709551615::UBIGINT AS b, 12345678901234567890.1234567891::DECIMAL(38,10) AS c',
      ),
    ).toStrictEqual(['{"a":9007199254740993,"b":18446744073709551615,"c":12345678901234567890.1234567891}']);
  });

  test('NaN is null in nested values and absent at the top level, and infinities are strings', async () => {
    expect(
      await readJson(
        `SELECT 'NaN'::DOUBLE AS a, {'x': 'NaN'::FLOAT, 'y': ['inf'::DOUBLE, '-inf'::DOUBLE]} AS metadata, 'say "\\":NaN' AS message`,
      ),
    ).toStrictEqual(['{"metadata":{"x":null,"y":["Infinity","-Infinity"]},"message":"say \\"\\\\\\":NaN"}']);
  });

  test('columns named __proto__, row_json or with quotes are ordinary columns', async () => {
    expect(await readJson(`SELECT 1 AS "__proto__", 2 AS row_json, 3 AS "a""b", 4 AS "path"`)).toStrictEqual([
      '{"__proto__":1,"row_json":2,"a\\"b":3,"path":4}',
    ]);
  });

  test('a file without rows has no records', async () => {
    const path = await save("SELECT 'm' AS message LIMIT 0");
    const reports: ReadProgress[] = [];
    expect(await readAll(path, { onProgress: report => reports.push(report) })).toStrictEqual([]);
    const totalBytes = (await readFile(path)).length;
    expect(reports).toStrictEqual([{ bytesRead: totalBytes, totalBytes }]);
  });
});

describe('readLogFile with a Parquet file', () => {
  test('a Parquet file is detected by content, and glob characters in its path are literal', async () => {
    const path = await save("SELECT 'm' AS message");
    await mkdir(join(directory, 'day=1'));
    await writeFile(join(directory, 'day=1', 'ab.txt'), 'a sibling that the name would match as a pattern');
    for (const name of ['a?.txt', "it's [1]*.json", 'a]b']) {
      const odd = join(directory, 'day=1', name);
      await copyFile(path, odd);
      expect(await readAll(odd)).toStrictEqual([{ message: 'm' }]);
    }
  });

  test('progress of a Parquet file never decreases and ends at the size of the file', async () => {
    const path = await save("SELECT 'm' || i AS message FROM range(10000) r(i)");
    const reports: ReadProgress[] = [];
    const content: Buffer[] = [];
    await readAll(path, {
      onProgress: report => reports.push(report),
      onContent: bytes => content.push(bytes),
    });
    const bytes = await readFile(path);
    const totalBytes = bytes.length;
    expect(Buffer.concat(content).equals(bytes)).toBe(true);
    expect(reports.length).toBeGreaterThan(3);
    expect(reports.at(-1)).toStrictEqual({ bytesRead: totalBytes, totalBytes });
    const bytesRead = reports.map(report => report.bytesRead);
    expect(bytesRead).toStrictEqual(bytesRead.toSorted((a, b) => a - b));
  });

  test('Parquet on standard input or in gzip is an error of one line', async () => {
    const bytes = await readFile(await save("SELECT 'm' AS message"));
    expect(await readError('-', { standardInput: Readable.from([bytes]) })).toMatch(
      /^standard input: Parquet is only supported/,
    );
    const compressed = join(directory, 'compressed.parquet.gz');
    await writeFile(compressed, gzipSync(bytes));
    expect(await readError(compressed)).toMatch(/compressed.parquet.gz: Parquet is only supported/);
  });

  test('a corrupt Parquet file is an error of one line', async () => {
    const path = join(directory, 'damaged.parquet');
    await writeFile(path, 'PAR1 and nothing that follows from it PAR1');
    expect(await readError(path)).toContain(`${path}: `);
  });

  test('a Parquet file that is damaged behind its first rows is an error', async () => {
    const path = join(directory, 'damaged-late.parquet');
    const rows = 'select i as id, repeat(md5(i::varchar), 4) as event_message from range(400_000) as _(i)';
    await connection.run(`COPY (${rows}) TO '${path}' (FORMAT parquet, ROW_GROUP_SIZE 20_000)`);
    const bytes = await readFile(path);
    const damage = Math.floor(bytes.length * 0.8);
    bytes.fill(0xff, damage, damage + 3_000);
    await writeFile(path, bytes);
    // DuckDB reports the error itself if it reads the damaged rows before it returns the first ones.
    expect(await readError(path)).toMatch(
      /: (the file is damaged: only \d+ of 400000 rows|Invalid Input Error)/,
    );
  });
});
