import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { beforeAll, describe, expect, test } from 'vitest';
import { systemTimer } from '../../src/system/timer.ts';
import { API_KEY, startTestApp } from '../support/app.ts';
import { openConnection, rawRequest, sendRaw } from '../support/raw-http.ts';
import { edgeRecord } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

const CALL = '/api/endpoints/query/logs.all?project=alpha';

// The listener closes slow requests after 15 s and checks every 2 s: each test takes 20 s, so they run concurrently.
describe.concurrent('slow clients', { timeout: 60_000 }, () => {
  const app = useApp();
  beforeAll(async () => {
    await app.append('edge', [edgeRecord({ at: '2026-11-14T12:00:00Z' })]);
  });

  test('headers that arrive one byte at a time get 408', async () => {
    const connection = await openConnection(app.url);
    connection.write(`GET ${CALL} HTTP/1.1\r\nHost: a\r\nX-Drip: `);
    const dripping = setInterval(() => connection.write('d'), 500);
    try {
      const { status, headers, body } = await connection.next();
      expect([status, headers['connection']]).toEqual([408, 'close']);
      expect(JSON.parse(body).error.code).toBe('request_timeout');
      await connection.ended;
    } finally {
      clearInterval(dripping);
    }
  });

  test('the time limit also applies to a second request on a connection', async () => {
    const connection = await openConnection(app.url);
    expect((await connection.ask(rawRequest('GET /health'))).status).toBe(200);
    const response = await connection.ask('GET /health HTTP/1.1\r\nHost', 'GET');
    expect(response.status).toBe(408);
    await connection.ended;
  });

  test('500 connections that never finish their headers do not delay other clients, and are all closed', async () => {
    const { hostname, port } = new URL(app.url);
    const starts = [
      '',
      'G',
      'GET / HTTP/1.1\r\n',
      `GET ${CALL} HTTP/1.1\r\nHost: a\r\nX-API-KEY: ${API_KEY}\r\nX-`,
    ];
    const open = new Set<Socket>();
    const closed: Promise<unknown>[] = [];
    try {
      for (let i = 0; i < 500; i++) {
        const socket = connect({ host: hostname, port: Number(port) });
        open.add(socket);
        socket.on('error', () => {});
        closed.push(once(socket, 'close').then(() => open.delete(socket)));
        await once(socket, 'connect');
        socket.resume().write(starts[i % starts.length] ?? '');
      }
      for (let i = 0; i < 50; i++) expect((await app.get(CALL)).rows).toHaveLength(1);
      // Checked by order, not by time: the normal client was served while all the others were still connected.
      expect(open.size).toBe(500);
      await Promise.all(closed);
      expect((await app.get(CALL)).rows).toHaveLength(1);
    } finally {
      for (const socket of open) socket.destroy();
    }
  });
});

const KEEP_ALIVE_CHUNKS = 'Connection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n';

describe('ambiguous requests (request smuggling)', () => {
  const app = useApp();

  test('a thousand wrong tokens on one connection close it', async () => {
    // The auth throttle needs the real time: on the fast clock of other tests, these requests come slowly.
    const throttling = await startTestApp({}, systemTimer);
    const connection = await openConnection(throttling.url);
    connection.write(rawRequest('GET /openapi.json', { 'X-API-KEY': 'dnd_wrong' }).repeat(5_000));
    await connection.ended;
    expect((await throttling.get('/openapi.json')).status).toBe(200);
    await throttling.close();
  });

  const HEAD = 'GET /health HTTP/1.1\r\nHost: a\r\n';
  /** Follows the ambiguous part; a response to it would mean that it was parsed as a separate request. */
  const HIDDEN = `GET /openapi.json HTTP/1.1\r\nHost: a\r\nX-API-KEY: ${API_KEY}\r\n\r\n`;

  const CHUNKS = '0\r\n\r\n';
  const AMBIGUOUS: Record<string, string> = {
    'Content-Length before chunked': `${HEAD}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}`,
    'chunked before Content-Length': `${HEAD}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n${CHUNKS}`,
    'two lengths that differ': `${HEAD}Content-Length: 5\r\nContent-Length: 0\r\n\r\nhello`,
    'two lengths that agree': `${HEAD}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello`,
    'a list of lengths': `${HEAD}Content-Length: 5, 5\r\n\r\nhello`,
    'a length with a sign': `${HEAD}Content-Length: +5\r\n\r\nhello`,
    'a negative length': `${HEAD}Content-Length: -1\r\n\r\n`,
    'a length in hexadecimal': `${HEAD}Content-Length: 0x5\r\n\r\nhello`,
    'an unknown transfer encoding': `${HEAD}Transfer-Encoding: xchunked\r\n\r\n${CHUNKS}`,
    'chunked, but not last': `${HEAD}Transfer-Encoding: chunked, identity\r\n\r\n${CHUNKS}`,
    'chunked twice': `${HEAD}${'Transfer-Encoding: chunked\r\n'.repeat(2)}\r\n${CHUNKS}`,
    'a space before the colon': `${HEAD}Transfer-Encoding : chunked\r\n\r\n${CHUNKS}`,
    'a vertical tab in the value': `${HEAD}Transfer-Encoding: \x0bchunked\r\n\r\n${CHUNKS}`,
    'a header continued on a second line': `${HEAD}X-A: b\r\n c\r\n\r\n`,
    'Transfer-Encoding on a second line': `${HEAD}Transfer-Encoding:\r\n chunked\r\n\r\n${CHUNKS}`,
    'a first header that starts with a space': 'GET /health HTTP/1.1\r\n Host: a\r\n\r\n',
    'bare line feeds': 'GET /health HTTP/1.1\nHost: a\n\n',
    'a bare line feed between headers': 'GET /health HTTP/1.1\r\nHost: a\nX-A: b\r\n\r\n',
    'a bare line feed at the end': 'GET /health HTTP/1.1\r\nHost: a\r\n\n',
    'a bare carriage return': 'GET /health HTTP/1.1\r\nHost: a\rX-A: b\r\n\r\n',
    'chunks in HTTP/1.0': `GET /health HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n${CHUNKS}`,
    'chunks in HTTP/1.0 with keep-alive': `GET /health HTTP/1.0\r\n${KEEP_ALIVE_CHUNKS}`,
    'chunks in HTTP/0.9 with keep-alive': `GET /health HTTP/0.9\r\n${KEEP_ALIVE_CHUNKS}`,
    'not HTTP': 'hello\r\n\r\n',
    'another protocol': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n',
    'an unknown method': 'FETCH /health HTTP/1.1\r\nHost: a\r\n\r\n',
    'a space in the target': 'GET /hea lth HTTP/1.1\r\nHost: a\r\n\r\n',
    'a broken header': `${HEAD}broken header\r\n\r\n`,
    'a NUL in a header': `${HEAD}X-A: a\0b\r\n\r\n`,
    'an unknown HTTP version': 'GET /health HTTP/9.9\r\nHost: a\r\n\r\n',
  };

  test.each(Object.entries(AMBIGUOUS))('%s: 400, and the connection is closed', async (_, ambiguous) => {
    const connection = await openConnection(app.url);
    connection.write(ambiguous + HIDDEN);
    const { status, headers, body } = await connection.next();
    expect([status, headers['connection']]).toEqual([400, 'close']);
    expect(headers['content-type']).toBe('application/json; charset=utf-8');
    expect(JSON.parse(body).error.code).toBe('invalid_body');
    await connection.ended;
    expect(connection.rest()).toBe('');
    expect((await app.get('/health')).status).toBe(200);
  });

  test.each([
    ['an invalid chunk size', '-1\r\nhello\r\n0\r\n\r\n'],
    ['a chunk size that is too large', 'fffffffffffffffff\r\nhello\r\n0\r\n\r\n'],
    ['a chunk size followed by a bare line feed', '5\nhello\r\n0\r\n\r\n'],
    ['a chunk that is longer than its size', '5\r\nhelloX\r\n0\r\n\r\n'],
  ])('%s: nothing after it is treated as a request', async (_, chunks) => {
    const connection = await openConnection(app.url);
    connection.write(`${HEAD}Transfer-Encoding: chunked\r\n\r\n${chunks}${HIDDEN}`);
    await connection.ended;
    expect(connection.rest()).not.toContain('"openapi"');
    expect(connection.rest()).toMatch(/HTTP\/1\.1 400 /);
  });
});

describe('response headers', () => {
  const app = useApp();

  test.each([
    ['a successful request', rawRequest(`GET ${CALL}`, { 'X-API-KEY': API_KEY })],
    ['health', rawRequest('GET /health')],
    ['OpenAPI', rawRequest('GET /openapi.json')],
    ['401', rawRequest(`GET ${CALL}`)],
    ['404', rawRequest('GET /nowhere')],
    ['405', rawRequest('DELETE /health')],
    ['414', rawRequest(`GET /${'x'.repeat(9000)}`)],
    ['not HTTP', 'hello\r\n\r\n'],
  ])('%s: no header names the software', async (_, request) => {
    const { headers } = await sendRaw(app.url, request);
    expect(headers).not.toHaveProperty('server');
    expect(headers).not.toHaveProperty('x-powered-by');
    expect(JSON.stringify(headers)).not.toMatch(/node|express|duckdb/i);
  });
});
