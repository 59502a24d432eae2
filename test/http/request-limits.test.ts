import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { openConnection, type RawResponse, rawRequest, sendRaw } from '../support/raw-http.ts';
import { useApp } from '../support/use-app.ts';

const CALL = '/api/endpoints/query/logs.all?project=alpha&x=';
const TOKEN = { 'X-API-KEY': API_KEY };

/** A target of exactly this many bytes. */
const target = (bytes: number) => CALL + 'u'.repeat(bytes - CALL.length);

function expectError({ status, headers, body }: RawResponse, expected: number, code: string): void {
  expect(status).toBe(expected);
  expect(headers['content-type']).toBe('application/json; charset=utf-8');
  expect(JSON.parse(body).error).toMatchObject({ code, message: expect.stringMatching(/\w+ \w+/) });
}

describe('limits of a request', () => {
  const app = useApp();

  test('a URL of 8 KiB is accepted, one byte more is 414', async () => {
    expect((await sendRaw(app.url, rawRequest(`GET ${target(8192)}`, TOKEN))).status).toBe(200);
    expectError(await sendRaw(app.url, rawRequest(`GET ${target(8193)}`, TOKEN)), 414, 'uri_too_long');
  });

  test('the connection stays usable after a URL that is too long', async () => {
    const connection = await openConnection(app.url);
    expect((await connection.ask(rawRequest(`GET ${target(9000)}`, TOKEN))).status).toBe(414);
    expect((await connection.ask(rawRequest('GET /health'))).status).toBe(200);
    connection.close();
  });

  test.each([20_000, 50_000])('a URL of %i bytes is 414', async bytes => {
    expectError(await sendRaw(app.url, rawRequest(`GET ${target(bytes)}`, TOKEN)), 414, 'uri_too_long');
  });

  test('headers just below 16 KiB are accepted, just above are 431', async () => {
    const headers = (bytes: number) => ({ ...TOKEN, Cookie: 'c'.repeat(bytes) });
    expect((await sendRaw(app.url, rawRequest(`GET ${target(100)}`, headers(16_000)))).status).toBe(200);
    const over = await sendRaw(app.url, rawRequest(`GET ${target(100)}`, headers(16_385)));
    expectError(over, 431, 'headers_too_large');
  });

  test('many small headers count together towards the limit', async () => {
    const many = Object.fromEntries(Array.from({ length: 300 }, (_, i) => [`X-Header-${i}`, 'v'.repeat(50)]));
    expectError(await sendRaw(app.url, rawRequest('GET /health', many)), 431, 'headers_too_large');
  });

  test('colons, spaces and line breaks count towards the limit: 2,700 headers of 6 bytes are accepted', async () => {
    const request = (line: string, count: number) =>
      `GET /health HTTP/1.1\r\nHost: a\r\n${line.repeat(count)}\r\n`;
    expect((await sendRaw(app.url, request('a: b\r\n', 2_700))).status).toBe(200);
    for (const count of [2_750, 10_000])
      expectError(await sendRaw(app.url, request('a: b\r\n', count)), 431, 'headers_too_large');
    expectError(await sendRaw(app.url, request('a:\r\n', 40_000)), 431, 'headers_too_large');
  });

  test.each([17_000, 30_000, 50_000])('a header of %i bytes is 431', async bytes => {
    const request = rawRequest('GET /health', { Cookie: 'c'.repeat(bytes) });
    expectError(await sendRaw(app.url, request), 431, 'headers_too_large');
  });

  test.each([
    ['a header', 431, 'headers_too_large', rawRequest('GET /health', { Cookie: 'c'.repeat(30_000) })],
    ['a URL', 414, 'uri_too_long', rawRequest(`GET ${target(30_000)}`)],
  ])('%s that arrives in small chunks is %i', async (_, status, code, request) => {
    const connection = await openConnection(app.url);
    for (let at = 0; at < request.length; at += 1400) {
      connection.write(request.slice(at, at + 1400));
      await sleep(2); // so that no two pieces arrive as one
    }
    expectError(await connection.next(), status, code);
    connection.close();
  });

  // Far above the limits the parser stops before it knows which part is too long, so either error is right.
  test.each([
    ['URL', rawRequest(`GET ${target(1_000_000)}`, TOKEN)],
    ['header', rawRequest('GET /health', { Cookie: 'c'.repeat(1_000_000) })],
  ])('a %s of a megabyte is rejected, and the server keeps serving', async (_, request) => {
    const { status, body } = await sendRaw(app.url, request);
    expect([414, 431]).toContain(status);
    expect(['uri_too_long', 'headers_too_large']).toContain(JSON.parse(body).error.code);
    expect((await app.get('/health')).status).toBe(200);
  });

  test('limits are checked before path and token', async () => {
    expect((await sendRaw(app.url, rawRequest(`POST /nowhere?${'u'.repeat(9000)}`))).status).toBe(414);
  });

  test('HTTP/1.1 without Host, or with two, is 400 (RFC 9112, section 3.2); an unknown Expect is ignored', async () => {
    for (const hosts of ['', 'Host: a\r\nhost: b\r\n'])
      expectError(await sendRaw(app.url, `GET /health HTTP/1.1\r\n${hosts}\r\n`), 400, 'invalid_body');
    expect((await sendRaw(app.url, rawRequest('GET /health', { Expect: 'miracles' }))).status).toBe(200);
  });

  test('a client that disconnects during its request does not affect others', async () => {
    for (const part of [
      'G',
      'GET /health HTTP/1.1\r\nHo',
      rawRequest('GET /health', { 'Content-Length': '9' }, 'x'),
    ]) {
      const connection = await openConnection(app.url);
      connection.write(part);
      connection.close();
    }
    expect((await app.get('/health')).status).toBe(200);
  });
});
