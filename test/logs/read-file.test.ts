import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OperatorError } from '../../src/domain/errors.ts';
import { type ReadOptions, type ReadProgress, readLogFile } from '../../src/logs/read-file.ts';
import { parseChunk, readAll } from './read-chunks.ts';

let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'dendro-read-file-'));
});
afterAll(() => rm(directory, { recursive: true }));

let files = 0;
async function save(content: string | Buffer, name = 'logs'): Promise<string> {
  const path = join(directory, `${files++}-${name}`);
  await writeFile(path, content);
  return path;
}

async function readError(path: string, options?: ReadOptions): Promise<string> {
  const error = await readAll(path, options).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(OperatorError);
  const { message } = error as OperatorError;
  expect(message).not.toContain('\n');
  return message;
}

const A = { event_message: 'ä', n: 1 };
const B = { event_message: '😀', metadata: { k: [1, 2] } };

describe('readLogFile detects the format by content', () => {
  const formats: [string, string][] = [
    ['NDJSON', `${JSON.stringify(A)}\n${JSON.stringify(B)}\n`],
    ['NDJSON without a last newline', `${JSON.stringify(A)}\n${JSON.stringify(B)}`],
    [
      'NDJSON with blank lines and carriage returns',
      `\n \r\n${JSON.stringify(A)}\r\n\r\n${JSON.stringify(B)}\r\n\n`,
    ],
    ['NDJSON with a byte order mark', `\ufeff${JSON.stringify(A)}\n${JSON.stringify(B)}\n`],
    ['an array on one line', JSON.stringify([A, B])],
    ['an array, pretty-printed', `${JSON.stringify([A, B], null, 2)}\n`],
    ['an array with one record a line', `[\n${JSON.stringify(A)},\n${JSON.stringify(B)}\n]\n`],
    ['a batch on one line', `${JSON.stringify({ batch: [A, B] })}\n`],
    ['a batch, pretty-printed', JSON.stringify({ batch: [A, B] }, null, 2)],
    ['JSON with a byte order mark', `\ufeff\n${JSON.stringify([A, B], null, 2)}`],
  ];

  test.each(formats)(
    '%s is read, also compressed with gzip and from standard input, one byte at a time',
    async (_, text) => {
      expect(await readAll(await save(text))).toStrictEqual([A, B]);
      expect(await readAll(await save(gzipSync(text), 'logs.json'))).toStrictEqual([A, B]); // whatever its name is
      const bytes = [...Buffer.from(text)].map(byte => Buffer.from([byte]));
      expect(await readAll('-', { standardInput: Readable.from(bytes) })).toStrictEqual([A, B]);
    },
  );

  test('an uncompressed file with a name that ends in .gz is read', async () => {
    expect(await readAll(await save(JSON.stringify(A), 'logs.gz'))).toStrictEqual([A]);
  });

  test('one object, on one line or pretty-printed, is one record', async () => {
    expect(await readAll(await save(JSON.stringify(B)))).toStrictEqual([B]);
    expect(await readAll(await save(JSON.stringify(B, null, 2)))).toStrictEqual([B]);
  });

  test('lines with a batch field next to a message are records', async () => {
    const record = { event_message: 'm', batch: [1, 2] };
    const line = `${JSON.stringify(record)}\n`;
    expect(await readAll(await save(line + line))).toStrictEqual([record, record]);
  });

  test('an empty file, a blank file and an empty array have no records', async () => {
    for (const text of ['', ' \n\n', '[]', '{"batch":[]}'])
      expect(await readAll(await save(text))).toStrictEqual([]);
    expect(await readAll(await save(gzipSync('')))).toStrictEqual([]);
  });

  test('concatenated gzip files are read as one', async () => {
    const path = await save(Buffer.concat([gzipSync(`${JSON.stringify(A)}\n`), gzipSync(JSON.stringify(B))]));
    expect(await readAll(path)).toStrictEqual([A, B]);
  });
});

describe('readLogFile with NDJSON', () => {
  test('an invalid line is one rejected record', async () => {
    expect(await readAll(await save('{"a":1}\n{"a":\n[1]\n{"b":2}'))).toStrictEqual([
      { a: 1 },
      'invalid_json',
      [1],
      { b: 2 },
    ]);
  });

  test('invalid UTF-8 becomes U+FFFD and does not affect other lines', async () => {
    const invalid = Buffer.concat([
      Buffer.from('{"a":"x'),
      Buffer.from([0xff, 0xc3]),
      Buffer.from('"}\n{"b":"ä"}\n'),
    ]);
    expect(await readAll(await save(invalid))).toStrictEqual([{ a: 'x\ufffd\ufffd' }, { b: 'ä' }]);
  });

  test('a line of exactly 16 MiB is read, a longer one is rejected, and the lines after it are read', async () => {
    const line = (bytes: number) => `{"a":"${'x'.repeat(bytes - '{"a":""}'.length)}"}\n`;
    const limit = 16 * 1024 * 1024;
    const path = await save(`{"a":1}\n${line(limit)}${line(limit + 1)}{"b":2}\n${line(3 * limit)}{"c":3}`);
    const values = await readAll(path);
    expect(values).toHaveLength(6);
    expect(values[1]).toBeTypeOf('object');
    expect([values[0], ...values.slice(2)]).toStrictEqual([
      { a: 1 },
      'too_large',
      { b: 2 },
      'too_large',
      { c: 3 },
    ]);
  });

  test('records after 17 MiB of blank lines are read', async () => {
    expect(await readAll(await save(`${'\n'.repeat(17 * 1024 * 1024)}{"a":1}`))).toStrictEqual([{ a: 1 }]);
  });

  test('a first or last line that is too long is rejected', async () => {
    const long = `{"a":"${'x'.repeat(40 * 1024 * 1024)}"}`;
    expect(await readAll(await save(`${long}\n{"b":2}\n`))).toStrictEqual(['too_large', { b: 2 }]);
    expect(await readAll(await save(`{"b":2}\n${long}`))).toStrictEqual([{ b: 2 }, 'too_large']);
  });

  test('1 GB of NDJSON is read with less than 400 MiB of memory', async () => {
    const block = Buffer.from(`{"event_message":"${'m'.repeat(1000)}"}\n`.repeat(256));
    let blocks = 0;
    const source = (function* () {
      while (blocks++ < 4096) yield block;
    })();
    const before = process.memoryUsage();
    let records = 0;
    let peak = 0;
    for await (const chunk of readLogFile('-', { standardInput: Readable.from(source) })) {
      records += parseChunk(chunk).length;
      if (records % 16_384 === 0) peak = Math.max(peak, process.memoryUsage().rss - before.rss);
    }
    expect(records).toBe(4096 * 256);
    expect(peak).toBeLessThan(400 * 1024 * 1024);
  });
});

describe('readLogFile with JSON', () => {
  test('a single line may be longer than 16 MiB if it is an array or a batch', async () => {
    const record = { a: 'x'.repeat(1_000_000) };
    const array = JSON.stringify(Array(20).fill(record));
    expect(await readAll(await save(array))).toHaveLength(20);
    expect(await readAll(await save(`{ "batch" : ${array} }`))).toHaveLength(20);
  });

  test('2,500 records are read as chunks of 1,000', async () => {
    const path = await save(JSON.stringify(Array(2500).fill(A)));
    const sizes: number[] = [];
    for await (const chunk of readLogFile(path)) sizes.push(parseChunk(chunk).length);
    expect(sizes).toStrictEqual([1000, 1000, 500]);
  });

  test('JSON of more than 256 MiB is an error that recommends NDJSON', async () => {
    const chunk = Buffer.alloc(1024 * 1024, ' ');
    const source = (function* () {
      yield Buffer.from('[\n');
      for (let i = 0; i < 257; i++) yield chunk;
    })();
    expect(await readError('-', { standardInput: Readable.from(source) })).toMatch(
      /^standard input: .*256 MiB.*NDJSON/,
    );
  });
});

describe('readLogFile with a file that cannot be read', () => {
  test('the error is one line with the name and the reason', async () => {
    const missing = join(directory, 'none');
    expect(await readError(missing)).toBe(`${missing}: there is no such file`);
    expect(await readError(directory)).toBe(`${directory}: it is a directory`);
    const path = await save('2026-11-14 09:30:00 GET /\n'.repeat(1000));
    expect(await readError(path)).toBe(
      `${path}: the first line is not JSON; the file must be NDJSON, JSON or Parquet`,
    );
    expect(await readError(await save('[\n  {"a": 1},\n  {"a" 2}\n]'))).toMatch(
      /: invalid JSON: .*line 3,? column 8/,
    );
  });

  test('the errors for truncated and for corrupt gzip data say so', async () => {
    const compressed = gzipSync(`${JSON.stringify(A)}\n`.repeat(1000));
    expect(await readError(await save(compressed.subarray(0, compressed.length - 10)))).toMatch(
      /: the gzip data is truncated$/,
    );
    const corrupt = Buffer.from(compressed);
    corrupt.fill(0xff, 20, 40);
    expect(await readError(await save(corrupt))).toMatch(/: the gzip data is corrupt$/);
  });

  test('zeros between gzip files are an error, and zeros at the end are padding', async () => {
    const lines = (record: unknown) => `${JSON.stringify(record)}\n`.repeat(100_000);
    const zeros = Buffer.alloc(512);
    const hole = Buffer.concat([gzipSync(lines(A)), zeros, gzipSync(lines(B)), gzipSync(lines(A))]);
    expect(await readError(await save(hole))).toMatch(/: the gzip data is corrupt$/);
    const padded = Buffer.concat([gzipSync(lines(A)), zeros]);
    expect(await readAll(await save(padded))).toHaveLength(100_000);
  });
});

describe('progress of readLogFile', () => {
  async function progressOf(path: string, options: ReadOptions = {}): Promise<ReadProgress[]> {
    const reports: ReadProgress[] = [];
    await readAll(path, { ...options, onProgress: report => reports.push(report) });
    const bytes = reports.map(report => report.bytesRead);
    expect(bytes).toStrictEqual(bytes.toSorted((a, b) => a - b));
    return reports;
  }

  test('progress counts the bytes of the file up to its size', async () => {
    const text = `${JSON.stringify(A)}\n`.repeat(50_000);
    const reports = await progressOf(await save(text));
    const totalBytes = Buffer.byteLength(text);
    expect(reports.length).toBeGreaterThan(1);
    expect(reports.at(-1)).toStrictEqual({ bytesRead: totalBytes, totalBytes });
  });

  test('progress counts the compressed bytes of a gzip file', async () => {
    const compressed = gzipSync(`${JSON.stringify(A)}\n`.repeat(50_000));
    const reports = await progressOf(await save(compressed));
    expect(reports.at(-1)).toStrictEqual({ bytesRead: compressed.length, totalBytes: compressed.length });
  });

  test('progress of standard input has no total', async () => {
    const reports = await progressOf('-', { standardInput: Readable.from([Buffer.from('{"a":1}')]) });
    expect(reports).toStrictEqual([{ bytesRead: 7, totalBytes: undefined }]);
  });
});

test('readLogFile closes its input when the caller stops early', async () => {
  for (const content of [
    `${JSON.stringify(A)}\n`.repeat(100_000),
    gzipSync(`${JSON.stringify(A)}\n`.repeat(100_000)),
  ]) {
    const standardInput = Readable.from([content].map(text => Buffer.from(text)));
    for await (const chunk of readLogFile('-', { standardInput })) {
      expect(parseChunk(chunk).length).toBeGreaterThan(0);
      break;
    }
    expect(standardInput.destroyed).toBe(true);
  }
});
