import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startTestApp, type TestApp } from '../support/app.ts';
import { idsOf, type SendOptions, sendLogs } from '../support/logs.ts';
import { type MadeTokens, makeTokens } from '../support/made-tokens.ts';

const MIB = 1024 * 1024;

let tokens: MadeTokens<'pinned'>;
let app: TestApp;
beforeAll(async () => {
  tokens = await makeTokens({ pinned: { scopes: ['ingest'], projects: ['mine'] } });
  app = await startTestApp({ tokensFile: tokens.file });
});
afterAll(async () => {
  await app.close();
  tokens.remove();
});

const send = (body: unknown, options?: SendOptions) => sendLogs(app.internalUrl, body, options);
const good = (id: string) => ({ project: 'p', message: 'm', id });
const nested = (levels: number): unknown => (levels === 0 ? 1 : { a: nested(levels - 1) });
/** A body of exactly so many bytes: one record and blanks. */
const bodyOf = (bytes: number, id: string) => JSON.stringify({ ...good(id), project: 'size' }).padEnd(bytes);

describe('a body of 16 MiB', () => {
  test('is taken, plain and compressed', async () => {
    expect((await send(bodyOf(16 * MIB, 'plain'))).status).toBe(200);
    const headers = { 'Content-Encoding': 'gzip' };
    expect((await send(gzipSync(bodyOf(16 * MIB, 'compressed')), { headers })).status).toBe(200);
    await expect.poll(() => idsOf(app, 'size')).toEqual(['compressed', 'plain']);
  });

  test('and one byte is 413: declared, in chunks, and unpacked', async () => {
    const body = bodyOf(16 * MIB + 1, 'over');
    const chunked = fetch(`${app.internalUrl}/api/logs?source_name=edge`, {
      method: 'POST',
      headers: { 'X-API-KEY': 'test-api-key-of-the-suite', 'Content-Type': 'application/json' },
      body: new Blob([body]).stream(),
      duplex: 'half',
    } as RequestInit);
    expect((await chunked).status).toBe(413);
    for (const answer of [
      await send(body),
      await send(gzipSync(body), { headers: { 'Content-Encoding': 'gzip' } }),
    ]) {
      expect([answer.status, answer.error.code]).toEqual([413, 'payload_too_large']);
      expect(answer.error.message).toMatch(/16 MiB/);
    }
  });

  test('that a few bytes unpack to is 413 soon, however large it would be', async () => {
    const layer = gzipSync(Buffer.alloc(64 * MIB));
    const bomb = Buffer.concat(Array.from({ length: 32 }, () => layer)); // 2 GiB of zeros in 2 MB
    const { status } = await send(bomb, { headers: { 'Content-Encoding': 'gzip' } });
    expect(status).toBe(413);
  });
});

describe('a record', () => {
  const overhead = 'id'.length + 'p'.length + '{}'.length;

  test('may have 1 MiB of id, project, message and metadata, and no byte more', async () => {
    const message = 'x'.repeat(MIB - overhead);
    expect(await send({ project: 'p', id: 'id', message })).toMatchObject({ status: 200, accepted: 1 });
    expect(await send({ project: 'p', id: 'id', message: `${message}x` })).toMatchObject({
      status: 422,
      errors: [{ index: 0, code: 'too_large' }],
    });
  });

  test('may be 64 levels deep, the record itself being the first', async () => {
    expect(await send({ ...good('levels-64'), metadata: nested(63) })).toMatchObject({ accepted: 1 });
    expect(await send({ ...good('levels-65'), metadata: nested(64) })).toMatchObject({
      status: 422,
      errors: [{ index: 0, code: 'too_deep' }],
    });
  });

  test('that is larger or deeper is rejected by itself; those around it are taken', async () => {
    const large = { ...good('large'), message: 'x'.repeat(MIB) };
    const answer = await send([
      good('around-1'),
      large,
      { ...good('deep'), deep: nested(64) },
      good('around-2'),
    ]);
    expect(answer).toMatchObject({ status: 200, accepted: 2, rejected: 2 });
    expect(answer.errors.map(({ index }) => index)).toEqual([1, 2]);
  });

  test('may be 1 MiB of whatever takes most room on its way', async () => {
    const project = 'widest';
    const most = MIB - 64;
    await send({ project, id: '1', message: '\u0001'.repeat(most) });
    await send({ project, id: '2', message: '"\\'.repeat(most / 2) });
    await send({ project, id: '3', message: '\u{1f600}'.repeat(most / 4) });
    await send({ project, id: '4', metadata: { a: '\u0001'.repeat(most / 6) } });
    await send({ project, id: '5', metadata: { request: { url: '\u0001'.repeat(most / 6) } } });
    await expect.poll(() => idsOf(app, project), { timeout: 10_000 }).toEqual(['1', '2', '3', '4', '5']);
  });
});

describe('what is not taken', () => {
  const REJECTED: [string, string, unknown, RegExp][] = [
    ['not_an_object', 'text', '"text"', /JSON object/],
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
    ['invalid_timestamp', 'a timestamp of words', { ...good('1'), timestamp: 'noon' }, /"noon" is not valid/],
    [
      'invalid_timestamp',
      'a timestamp of 11 digits',
      { ...good('2'), timestamp: 17946596960 },
      /is not valid/,
    ],
    ['invalid_timestamp', 'a timestamp that is no integer', { ...good('3'), timestamp: 1.5 }, /is not valid/],
    [
      'in_the_future',
      'over an hour ahead',
      { ...good('4'), timestamp: '2026-11-14T13:34:56.789013Z' },
      /1 hour/,
    ],
    [
      'past_retention',
      'over 90 days old',
      { ...good('5'), timestamp: '2026-08-16T12:34:56.789011Z' },
      /90 days/,
    ],
    ['too_large', 'over 1 MiB', { ...good('6'), message: 'x'.repeat(MIB) }, /1 MiB/],
    ['too_deep', 'over 64 levels', { ...good('7'), metadata: nested(64) }, /64 levels/],
  ];

  test.each(REJECTED)('%s: %s', async (code, _, body, message) => {
    const answer = await send(body);
    expect(answer).toMatchObject({ status: 422, accepted: 0, rejected: 1 });
    expect(answer.errors).toEqual([{ index: 0, code, message: expect.stringMatching(message) }]);
  });

  test('invalid_json: a line of NDJSON', async () => {
    const answer = await send('{"a":}\n', { headers: { 'Content-Type': 'application/x-ndjson' } });
    expect(answer.status).toBe(422);
    expect(answer.errors).toEqual([
      {
        index: 0,
        code: 'invalid_json',
        message: expect.stringMatching(/^The line is not valid JSON: Unexpected token/),
      },
    ]);
  });

  test('project_not_allowed: a project outside of the token', async () => {
    const answer = await send(good('pinned'), { token: tokens.secrets.pinned });
    expect(answer.errors).toEqual([
      {
        index: 0,
        code: 'project_not_allowed',
        message: 'The token is not allowed to send records for the project "p".',
      },
    ]);
  });

  test('exactly an hour ahead and exactly 90 days old are taken', async () => {
    const at = ['2026-11-14T13:34:56.789012Z', '2026-08-16T12:34:56.789012Z'];
    const answer = await send(at.map((timestamp, i) => ({ ...good(`edge-${i}`), timestamp })));
    expect(answer).toMatchObject({ status: 200, accepted: 2, rejected: 0 });
  });

  test('is told with its index in the batch', async () => {
    const answer = await send([good('i-0'), 7, good('i-2'), { message: 'm' }, good('i-4')]);
    expect(answer).toMatchObject({ status: 200, accepted: 3, rejected: 2 });
    expect(answer.errors.map(({ index, code }) => [index, code])).toEqual([
      [1, 'not_an_object'],
      [3, 'no_project'],
    ]);
  });

  test('is listed up to 20 times and counted in full', async () => {
    const answer = await send([...Array.from({ length: 50 }, (_, i) => i), good('the-one')]);
    expect(answer).toMatchObject({ status: 200, accepted: 1, rejected: 50 });
    expect(answer.errors.map(({ index }) => index)).toEqual(Array.from({ length: 20 }, (_, i) => i));
  });

  test('if none is left of one or more: 422 with all the fields of an answer and an error', async () => {
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
