import { gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { idsOf, type SendOptions, sendLogs } from '../support/logs.ts';
import { useApp } from '../support/use-app.ts';

const MIB = 1024 * 1024;

const app = useApp();

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
    await expect.poll(() => idsOf(app, project)).toEqual(['1', '2', '3', '4', '5']);
  });
});

describe('rejected records', () => {
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
