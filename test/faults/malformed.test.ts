import { setTimeout as sleep } from 'node:timers/promises';
import * as zlib from 'node:zlib';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { fetchResponse } from '../support/app.ts';
import { reportFault, sized } from '../support/fault-report.ts';
import { type SendOptions, sendLogs } from '../support/logs.ts';
import { createTempDirectory, PROCESS_API_KEY, type ServerProcess, startServer } from '../support/process.ts';

const MIB = 1024 * 1024;
/** Far above the memory of a normal run, and far below that of a leak of these bodies. */
const MAX_RSS = 900 * MIB;

/** Of all responses. */
const statuses = new Map<number, number>();

const headers = { 'X-API-KEY': PROCESS_API_KEY };
let dataDirectory: ReturnType<typeof createTempDirectory>;
let server: ServerProcess;
beforeAll(async () => {
  dataDirectory = createTempDirectory();
  server = await startServer(['--data', dataDirectory.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
});
afterAll(async () => {
  const { code, stderr } = await server.stop();
  dataDirectory.remove();
  expect(code).toBe(0);
  expect(stderr).not.toMatch(/ failed: |UNHANDLED|at .*\.js:\d+/);
});

const send = (body: string | Uint8Array, { headers = {}, ...options }: SendOptions = {}) =>
  sendLogs(server.internalUrl, body, { ...options, headers, token: PROCESS_API_KEY });
const metric = async (name: string) => {
  const { text } = await fetchResponse(`${server.internalUrl}/metrics`, { headers });
  return Number(
    text
      .split('\n')
      .find(line => line.startsWith(`${name} `))
      ?.slice(name.length + 1),
  );
};
const expectQueryable = async () => {
  const response = await fetchResponse(`${server.url}/api/endpoints/query/logs.all?project=p`, { headers });
  expect(response.status).toBe(200);
};

const CONTENT_CODINGS: [string, (body: Uint8Array) => Uint8Array][] = [
  ['', body => body],
  ['gzip', zlib.gzipSync],
  ['deflate', zlib.deflateSync],
  ['deflate', zlib.deflateRawSync],
  ['br', body => zlib.brotliCompressSync(body, { params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 } })],
];
const TYPES = ['application/json', 'application/x-ndjson', 'text/plain'];

/** Records that may be valid, with random values in all fields. */
const anyRecord = fc.record(
  {
    project: fc.oneof(fc.constant('p'), fc.jsonValue()),
    event_message: fc.oneof(fc.string({ unit: 'binary' }), fc.jsonValue()),
    message: fc.jsonValue(),
    metadata: fc.oneof(fc.dictionary(fc.string({ unit: 'binary' }), fc.jsonValue()), fc.jsonValue()),
    timestamp: fc.oneof(fc.integer(), fc.bigInt().map(String), fc.string(), fc.jsonValue()),
    id: fc.jsonValue(),
    batch: fc.jsonValue(),
    ['__proto__']: fc.jsonValue(),
  },
  { requiredKeys: [] },
);
const text = (value: unknown) => Buffer.from(JSON.stringify(value) ?? '');
const anyContent: fc.Arbitrary<Uint8Array> = fc.oneof(
  fc.uint8Array({ maxLength: 300 }),
  fc.string({ unit: 'binary', maxLength: 100 }).map(each => Buffer.from(each)),
  fc.jsonValue().map(text),
  anyRecord.map(text),
  fc.array(anyRecord, { maxLength: 5 }).map(text),
  fc.array(anyRecord, { maxLength: 5 }).map(batch => text({ batch })),
  fc
    .array(anyRecord, { maxLength: 5 })
    .map(all => Buffer.from(all.map(each => JSON.stringify(each)).join('\n'))),
  // JSON with numbers of any length, lone surrogates and invalid escapes
  fc
    .tuple(
      fc.stringMatching(/^-?\d{1,40}(\.\d{1,40})?([eE][+-]?\d{1,5})?$/),
      fc.stringMatching(/^\\u[d-f][0-9a-f]{3}$/),
    )
    .map(([number, surrogate]) => Buffer.from(`{"project":"p","n":${number},"message":"${surrogate}"}`)),
  fc
    .tuple(fc.nat(3_000), fc.constantFrom('[', '{"a":'))
    .map(([depth, open]) => Buffer.from(open.repeat(depth))),
);
/** Truncates the body, changes one byte of it, or leaves it unchanged. */
const corrupt = (body: Uint8Array, mode: number, at: number): Uint8Array => {
  const bytes = Buffer.from(body);
  if (mode === 1) return bytes.subarray(0, at % (bytes.length + 1));
  if (mode === 2 && bytes.length > 0) bytes[at % bytes.length] = (at >> 3) & 0xff;
  return bytes;
};

test('thousands of malformed bodies get 4xx, or 200 if valid by chance, and neither memory nor the queue grows', {
  timeout: 300_000,
}, async () => {
  const before = await metric('process_resident_memory_bytes');
  await fc.assert(
    fc.asyncProperty(
      fc.array(
        fc.tuple(
          anyContent,
          fc.constantFrom(...CONTENT_CODINGS),
          fc.constantFrom(...TYPES),
          fc.constantFrom(...LOG_KINDS),
          fc.nat(3),
          fc.nat(100_000),
        ),
        { minLength: 10, maxLength: 10 },
      ),
      async requests => {
        const responses = await Promise.all(
          requests.map(([content, [contentCoding, compress], type, kind, mode, at]) =>
            send(corrupt(compress(content), mode, at), {
              query: `?source_name=${kind}`,
              headers: { 'Content-Type': type, 'Content-Encoding': contentCoding },
            }),
          ),
        );
        for (const { status, text } of responses) {
          statuses.set(status, (statuses.get(status) ?? 0) + 1);
          expect([200, 400, 413, 422], text).toContain(status);
          if (status !== 200) expect(JSON.parse(text).error.code).toMatch(/^\w+$/);
          expect(text).not.toMatch(/node:|\.ts|\.js|at \w+ \(/);
        }
      },
    ),
    { numRuns: sized(200, 400), seed: 20261114, endOnFailure: true },
  );
  console.info(`statuses: ${JSON.stringify([...statuses])}`);
  expect(statuses.get(200)).toBeGreaterThan(50);
  await expect.poll(() => metric('dendro_intake_queue_bytes')).toBe(0);
  await expectQueryable();
  expect((await metric('process_resident_memory_bytes')) - before).toBeLessThan(400 * MIB);
  expect(server.stderr()).not.toMatch(/applying records to the store failed/);
});

// A body that needs more memory or time than a worker thread has gets 413.
describe('hostile bodies do not delay queries', () => {
  const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
  const bomb = zlib.gzipSync(Buffer.alloc(256 * MIB));
  const BODIES: [string, string | Uint8Array, Record<string, string>, readonly number[]][] = [
    ['a gzip bomb', bomb, { 'Content-Encoding': 'gzip' }, [413]],
    ['a gzip bomb in a gzip bomb', zlib.gzipSync(bomb), { 'Content-Encoding': 'gzip' }, [400]],
    [
      'a brotli bomb',
      zlib.brotliCompressSync(Buffer.alloc(256 * MIB), {
        params: { [zlib.constants.BROTLI_PARAM_QUALITY]: 1 },
      }),
      { 'Content-Encoding': 'br' },
      [413],
    ],
    ['arrays nested a million deep', deep(1_000_000), {}, [413, 422]],
    ['objects nested 100,000 deep', `${'{"a":'.repeat(100_000)}1${'}'.repeat(100_000)}`, {}, [413, 422]],
    ['eight million numbers', `[${'1,'.repeat(8 * 1024 * 1024 - 2)}1]`, {}, [413, 422]],
    ['five million empty objects', `[${'{},'.repeat(5 * 1024 * 1024)}{}]`, {}, [413]],
    ['millions of nested empty arrays', `[${'[[]],'.repeat(3 * 1024 * 1024)}[]]`, {}, [413, 422]],
    ['16 MiB of newlines', '\n'.repeat(16 * MIB), { 'Content-Type': 'application/x-ndjson' }, [200, 413]],
    [
      'eight million invalid lines',
      'x\n'.repeat(8 * 1024 * 1024),
      { 'Content-Type': 'application/x-ndjson' },
      [413, 422],
    ],
    ['a number of 16 million digits', '1'.repeat(16 * MIB), {}, [413, 422]],
    [
      'a million keys in one record',
      `{${Array.from({ length: 1_000_000 }, (_, i) => `"${i}":1`).join()}}`,
      {},
      [413, 422],
    ],
    ['half a million tiny records', `[${'{"project":"p","message":"m"},'.repeat(540_000)}7]`, {}, [200, 413]],
    ['16 MiB that are not UTF-8', Buffer.alloc(16 * MIB, 0xff), {}, [400]],
  ];

  test.each(BODIES)(
    'queries are served during a body of: %s',
    { timeout: 90_000 },
    async (_, body, headers, expected) => {
      const sending = send(body, { headers });
      let queries = 0;
      let slowest = 0;
      let isDone = false;
      void sending.finally(() => {
        isDone = true;
      });
      while (!isDone) {
        const start = performance.now();
        await expectQueryable();
        slowest = Math.max(slowest, performance.now() - start);
        queries++;
        await sleep(5);
      }
      const { status, text } = await sending;
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      expect(expected, text.slice(0, 300)).toContain(status);
      expect(text.length).toBeLessThan(20_000);
      expect(queries).toBeGreaterThan(0);
      expect(slowest).toBeLessThan(30_000);
      expect(await metric('process_resident_memory_bytes')).toBeLessThan(MAX_RSS);
    },
  );

  test('the intake accepts and stores records after the hostile bodies', async () => {
    const body = JSON.stringify({ project: 'after', message: 'm', id: 'a' });
    expect((await send(body)).status).toBe(200);
    await expect.poll(() => metric('dendro_intake_queue_bytes'), { timeout: 30_000 }).toBe(0);
    await sleep(300);
    const url = `${server.url}/api/endpoints/query/logs.all?project=after`;
    const countRows = async () => (await fetchResponse(url, { headers })).rows.length;
    await expect.poll(countRows).toBeGreaterThan(0);
    reportFault({
      fault: 'malformed requests',
      runs: [...statuses.values()].reduce((sum, count) => sum + count, 0),
      outcome: `${[...statuses.keys()].sort().join(', ')} with a reason; queries are served meanwhile`,
      lost: 0,
      duplicated: (await countRows()) - 1,
    });
    expect(await metric('process_resident_memory_bytes')).toBeLessThan(MAX_RSS);
  });
});
