import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { openConnection, type RawConnection, rawRequest, sendRaw } from '../support/raw-http.ts';
import { edgeRecord } from '../support/record.ts';
import { useApp } from '../support/use-app.ts';

const CALL = '/api/endpoints/query/logs.all?project=alpha';
const TOKEN = { 'X-API-KEY': API_KEY };
const ROUTES = [
  CALL,
  '/api/endpoints/query/functions.invocation-stats?project=alpha',
  '/api/endpoints/query/no.such',
  '/api/endpoints/query/logs.all',
  '/api/endpoints',
  '/openapi.json',
  '/health',
  '/nowhere',
];

describe('an HTTP connection', () => {
  let connection: RawConnection;
  const app = useApp({ cacheBytes: 1_000_000 });
  beforeAll(async () => {
    await app.append('edge', [edgeRecord({ id: 'row', at: '2026-11-14T12:00:00Z', message: 'h\u00e9llo' })]);
    connection = await openConnection(app.url);
  });
  afterAll(async () => {
    connection.close();
  });

  test.each(ROUTES)('HEAD %s returns the status and the headers of GET, and no body', async path => {
    const got = await connection.ask(rawRequest(`GET ${path}`, TOKEN));
    const head = await connection.ask(rawRequest(`HEAD ${path}`, TOKEN));
    expect(head.status).toBe(got.status);
    const passing = {
      date: '',
      age: '',
      'server-timing': '',
      'cache-status': '',
      'cache-control': '',
      'dendro-request-id': '',
    };
    expect({ ...head.headers, ...passing }).toEqual({ ...got.headers, ...passing });
    expect(Number(head.headers['content-length'])).toBe(Buffer.byteLength(got.body));
    expect(got.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(got.headers['x-content-type-options']).toBe('nosniff');
    // A body would precede the next response.
    expect((await connection.ask(rawRequest('GET /health'))).status).toBe(200);
    expect(connection.rest()).toBe('');
  });

  test.each([
    ['none', ''],
    ['JSON', '{"project":"other"}'],
    ['not JSON', '{{{{'],
    ['a form', 'project=other&interval=daily'],
    ['text that looks like a request', 'GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n'],
    ['a mebibyte', 'x'.repeat(1024 * 1024)],
  ])('the body of a GET is ignored, and the connection stays usable: %s', async (_, content) => {
    const json = { ...TOKEN, 'Content-Type': 'application/json; charset=utf-8' };
    const bytes = Buffer.byteLength(content);
    const lengthened = rawRequest(`GET ${CALL}`, { ...json, 'Content-Length': String(bytes) }, content);
    const chunks = bytes === 0 ? '0\r\n\r\n' : `${bytes.toString(16)}\r\n${content}\r\n0\r\n\r\n`;
    const chunked = rawRequest(`GET ${CALL}`, { ...json, 'Transfer-Encoding': 'chunked' }, chunks);
    for (const request of [lengthened, chunked, ...(bytes === 0 ? [rawRequest(`GET ${CALL}`, json)] : [])]) {
      const { status, body } = await connection.ask(request);
      expect(status).toBe(200);
      expect(JSON.parse(body).result).toHaveLength(1);
    }
    expect((await connection.ask(rawRequest('GET /health'))).status).toBe(200);
    expect(connection.rest()).toBe('');
  });

  test('a POST with a body that gets an error leaves the connection usable', async () => {
    const rejected = await connection.ask(
      rawRequest('POST /health', { ...TOKEN, 'Content-Length': '4' }, 'body'),
    );
    expect(rejected.status).toBe(405);
    expect((await connection.ask(rawRequest('GET /health'))).status).toBe(200);
  });

  test('serves many requests in sequence, including errors', async () => {
    for (let i = 0; i < 20; i++) {
      expect((await connection.ask(rawRequest(`GET ${CALL}`, TOKEN))).status).toBe(200);
      expect((await connection.ask(rawRequest(`GET ${CALL}`))).status).toBe(401);
      expect((await connection.ask(rawRequest('GET /nowhere'))).status).toBe(404);
    }
  });

  test('pipelined requests get their responses in order', async () => {
    connection.write(
      [
        rawRequest(`GET ${CALL}`, TOKEN),
        rawRequest('GET /nowhere'),
        rawRequest('GET /api/endpoints'),
        rawRequest('GET /health'),
      ].join(''),
    );
    const statuses: number[] = [];
    for (let i = 0; i < 4; i++) statuses.push((await connection.next()).status);
    expect(statuses).toEqual([200, 404, 401, 200]);
  });

  test.each(['http://localhost', 'HTTP://dendro.example:4000', 'https://user@dendro.example'])(
    'a request target in absolute form is accepted: %s',
    async origin => {
      const { status, body } = await connection.ask(rawRequest(`GET ${origin}${CALL}`, TOKEN));
      expect(status).toBe(200);
      expect(JSON.parse(body).result).toHaveLength(1);
      expect((await connection.ask(rawRequest(`GET ${origin}/nowhere`, TOKEN))).status).toBe(404);
    },
  );

  test('is closed after Connection: close', async () => {
    const once = await openConnection(app.url);
    const { status, headers } = await once.ask(rawRequest('GET /health', { Connection: 'close' }));
    expect(status).toBe(200);
    expect(headers['connection']).toBe('close');
    await once.ended;
  });

  test('may use HTTP/1.0', async () => {
    const { status, body } = await sendRaw(app.url, `GET ${CALL} HTTP/1.0\r\nX-API-KEY: ${API_KEY}\r\n\r\n`);
    expect(status).toBe(200);
    expect(JSON.parse(body).result).toHaveLength(1);
  });
});
