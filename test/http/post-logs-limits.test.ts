import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { idsOf, type SendOptions, sendLogs } from '../support/logs.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

const MIB = 1024 * 1024;

let tokens: TestTokens<'pinned'>;
let app: TestApp;
beforeAll(async () => {
  tokens = await createTokens({ pinned: { scopes: ['ingest'], projects: ['mine'] } });
  app = await startTestApp({ tokensFile: tokens.file });
});
afterAll(async () => {
  await app.close();
  tokens.remove();
});

const send = (body: unknown, options?: SendOptions) => sendLogs(app.internalUrl, body, options);
const validRecord = (id: string) => ({ project: 'p', message: 'm', id });
const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });
/** One record, padded with spaces to the given size. */
const createBody = (bytes: number, id: string) =>
  JSON.stringify({ ...validRecord(id), project: 'size' }).padEnd(bytes);

describe('size limit of a body', () => {
  test('a body of 16 MiB is accepted, plain and compressed', async () => {
    expect((await send(createBody(16 * MIB, 'plain'))).status).toBe(200);
    const headers = { 'Content-Encoding': 'gzip' };
    expect((await send(gzipSync(createBody(16 * MIB, 'compressed')), { headers })).status).toBe(200);
    await expect.poll(() => idsOf(app, 'size')).toEqual(['compressed', 'plain']);
  });

  test('a body of 16 MiB and one byte gets 413: with Content-Length, chunked and compressed', async () => {
    const body = createBody(16 * MIB + 1, 'over');
    const chunked = fetch(`${app.internalUrl}/api/logs?source_name=edge`, {
      method: 'POST',
      headers: { 'X-API-KEY': 'test-api-key-of-the-suite', 'Content-Type': 'application/json' },
      body: new Blob([body]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect((await chunked).status).toBe(413);
    for (const response of [
      await send(body),
      await send(gzipSync(body), { headers: { 'Content-Encoding': 'gzip' } }),
    ]) {
      expect([response.status, response.error.code]).toEqual([413, 'payload_too_large']);
      expect(response.error.message).toMatch(/16 MiB/);
    }
  });

  test('a compressed body of 2 MB that decompresses to 2 GiB gets 413', async () => {
    const member = gzipSync(Buffer.alloc(64 * MIB));
    const bomb = Buffer.concat(Array.from({ length: 32 }, () => member)); // 2 GiB of zeros in 2 MB
    const { status } = await send(bomb, { headers: { 'Content-Encoding': 'gzip' } });
    expect(status).toBe(413);
  });
});

describe('limits of a record', () => {
  const overhead = 'id'.length + 'p'.length + '{}'.length;

  test('1 MiB of id, project, message and metadata is accepted, and one byte more is rejected', async () => {
    const message = 'x'.repeat(MIB - overhead);
    expect(await send({ project: 'p', id: 'id', message })).toMatchObject({ status: 200, accepted: 1 });
    expect(await send({ project: 'p', id: 'id', message: `${message}x` })).toMatchObject({
      status: 422,
      errors: [{ index: 0, code: 'too_large' }],
    });
  });

  test('64 levels of nesting are accepted and 65 rejected; the record itself is the first level', async () => {
    expect(await send({ ...validRecord('levels-64'), metadata: nested(63) })).toMatchObject({ accepted: 1 });
    expect(await send({ ...validRecord('levels-65'), metadata: nested(64) })).toMatchObject({
      status: 422,
      errors: [{ index: 0, code: 'too_deep' }],
    });
  });

  test('a record beyond a limit is rejected, and the other records of the batch are accepted', async () => {
    const large = { ...validRecord('large'), message: 'x'.repeat(MIB) };
    const response = await send([
      validRecord('around-1'),
      large,
      { ...validRecord('deep'), deep: nested(64) },
      validRecord('around-2'),
    ]);
    expect(response).toMatchObject({ status: 200, accepted: 2, rejected: 2 });
    expect(response.errors.map(({ index }) => index)).toEqual([1, 2]);
  });

  test('records of 1 MiB are stored, also with characters that take the most space when encoded', async () => {
    const project = 'widest';
    const length = MIB - 64;
    await send({ project, id: '1', message: '\u0001'.repeat(length) });
    await send({ project, id: '2', message: '"\\'.repeat(length / 2) });
    await send({ project, id: '3', message: '\u{1f600}'.repeat(length / 4) });
    await send({ project, id: '4', metadata: { a: '\u0001'.repeat(length / 6) } });
    await send({ project, id: '5', metadata: { request: { url: '\u0001'.repeat(length / 6) } } });
    await expect.poll(() => idsOf(app, project), { timeout: 10_000 }).toEqual(['1', '2', '3', '4', '5']);
  });
});

describe('rejected records', () => {
  const REJECTED: [string, string, unknown, RegExp][] = [
    ['not_an_object', 'a string', '"text"', /JSON object/],
    ['not_an_object', 'an array', '[[]]', /JSON object/],
    ['no_project', 'no project', { message: 'm' }, /has no project/],
    ['no_project', 'an empty project', { message: 'm', project: '' }, /has no project/],
    ['no_project', 'a project that is a number', { message: 'm', project: 7 }, /has no project/],
    ['empty_record', 'neither message nor metadata', { project: 'p' }, /neither/],
    [
      'empty_record',
      'an empty message and empty metadata',
      { project: 'p', message: '', metadata: {} },
      /neither/,
    ],
    [
      'invalid_timestamp',
      'a timestamp that is a word',
      { ...validRecord('1'), timestamp: 'noon' },
      /"noon" is not valid/,
    ],
    [
      'invalid_timestamp',
      'a timestamp of 11 digits',
      { ...validRecord('2'), timestamp: 17946596960 },
      /is not valid/,
    ],
    [
      'invalid_timestamp',
      'a timestamp with a fraction',
      { ...validRecord('3'), timestamp: 1.5 },
      /is not valid/,
    ],
    [
      'in_the_future',
      'a timestamp more than 1 hour in the future',
      { ...validRecord('4'), timestamp: '2026-11-14T13:34:56.789013Z' },
      /1 hour/,
    ],
    [
      'past_retention',
      'a timestamp older than 90 days',
      { ...validRecord('5'), timestamp: '2026-08-16T12:34:56.789011Z' },
      /90 days/,
    ],
    ['too_large', 'a record larger than 1 MiB', { ...validRecord('6'), message: 'x'.repeat(MIB) }, /1 MiB/],
    [
      'too_deep',
      'more than 64 levels of nesting',
      { ...validRecord('7'), metadata: nested(64) },
      /64 levels/,
    ],
  ];

  test.each(REJECTED)('a record is rejected with %s: %s', async (code, _, body, message) => {
    const response = await send(body);
    expect(response).toMatchObject({ status: 422, accepted: 0, rejected: 1 });
    expect(response.errors).toEqual([{ index: 0, code, message: expect.stringMatching(message) }]);
  });

  test('an NDJSON line that is not JSON is rejected with invalid_json', async () => {
    const response = await send('{"a":}\n', { headers: { 'Content-Type': 'application/x-ndjson' } });
    expect(response.status).toBe(422);
    expect(response.errors).toEqual([
      {
        index: 0,
        code: 'invalid_json',
        message: expect.stringMatching(/^The line is not valid JSON: Unexpected token/),
      },
    ]);
  });

  test('a project outside the projects of the token is rejected with project_not_allowed', async () => {
    const response = await send(validRecord('pinned'), { token: tokens.secrets.pinned });
    expect(response.errors).toEqual([
      {
        index: 0,
        code: 'project_not_allowed',
        message: 'The token is not allowed to send records for the project "p".',
      },
    ]);
  });

  test('timestamps exactly 1 hour in the future and exactly 90 days old are accepted', async () => {
    const at = ['2026-11-14T13:34:56.789012Z', '2026-08-16T12:34:56.789012Z'];
    const response = await send(at.map((timestamp, i) => ({ ...validRecord(`edge-${i}`), timestamp })));
    expect(response).toMatchObject({ status: 200, accepted: 2, rejected: 0 });
  });

  test('the errors contain the index of each rejected record in the batch', async () => {
    const response = await send([
      validRecord('i-0'),
      7,
      validRecord('i-2'),
      { message: 'm' },
      validRecord('i-4'),
    ]);
    expect(response).toMatchObject({ status: 200, accepted: 3, rejected: 2 });
    expect(response.errors.map(({ index, code }) => [index, code])).toEqual([
      [1, 'not_an_object'],
      [3, 'no_project'],
    ]);
  });

  test('at most 20 errors are listed, and all rejected records are counted', async () => {
    const response = await send([...Array.from({ length: 50 }, (_, i) => i), validRecord('the-one')]);
    expect(response).toMatchObject({ status: 200, accepted: 1, rejected: 50 });
    expect(response.errors.map(({ index }) => index)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  test('a batch without accepted records gets 422 with all fields of a response and an error', async () => {
    const { status, text } = await send([1, {}]);
    expect(status).toBe(422);
    expect(JSON.parse(text)).toEqual({
      message: 'Nothing was logged.',
      accepted: 0,
      rejected: 2,
      errors: [
        { index: 0, code: 'not_an_object', message: expect.any(String) },
        { index: 1, code: 'no_project', message: expect.any(String) },
      ],
      error: { code: 'nothing_accepted', message: expect.any(String) },
    });
  });
});
