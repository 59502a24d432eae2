import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { describe, expect, test } from 'vitest';
import { respondToParserError } from '../../src/http/parser-error.ts';
import { API_KEY } from '../support/app.ts';
import { BUILT_IN, SLEEP } from '../support/custom-endpoints.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';
import { useApp, useEndpoints } from '../support/use-app.ts';

const SLOW = rawRequest('GET /api/endpoints/query/test.sleep?milliseconds=300', { 'X-API-KEY': API_KEY });
const HEALTH = rawRequest('GET /health');
const MALFORMED = 'hello\r\n\r\n';
const CHUNKED = { 'Transfer-Encoding': 'chunked' };
const CHUNKED_SLOW = rawRequest(
  'GET /api/endpoints/query/test.sleep?milliseconds=300',
  { 'X-API-KEY': API_KEY, ...CHUNKED },
  '0\r\n\r\n', // without content: Node runs no microtask before it parses the next request
);

/** A client that reads but never closes its side of the connection. */
async function connectHalfOpen(url: string): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
  await once(socket, 'connect');
  return socket.resume();
}

/** Resolves when the server has no socket for this client anymore: the system then resets the connection on a write. */
async function untilReset(socket: Socket): Promise<void> {
  socket.on('error', () => {});
  const probe = setInterval(() => socket.write('x'), 50);
  await new Promise(resolve => socket.once('close', resolve));
  clearInterval(probe);
}

describe('a request that the HTTP parser rejects', () => {
  const own = useEndpoints({ sleep: SLEEP });
  const app = useApp({ endpointFolders: { builtIn: BUILT_IN, custom: own.folder } });

  test.each([
    ['a slow request', SLOW + MALFORMED, [200, 400]],
    ['a slow request and a fast one', SLOW + HEALTH + MALFORMED, [200, 200, 400]],
    ['two fast requests', HEALTH + HEALTH + MALFORMED, [200, 200, 400]],
    ['a chunked request', CHUNKED_SLOW + MALFORMED, [200, 400]],
    ['a chunked request and a fast one', CHUNKED_SLOW + HEALTH + MALFORMED, [200, 200, 400]],
    ['two chunked requests', CHUNKED_SLOW + CHUNKED_SLOW + MALFORMED, [200, 200, 400]],
    [
      'a chunked request, with a malformed chunk',
      `${CHUNKED_SLOW}${rawRequest('GET /health', CHUNKED, 'x\r\n')}`,
      [200, 400],
    ],
    [
      'a slow request, with ambiguous lengths',
      `${SLOW}GET /health HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
      [200, 400],
    ],
    [
      'a slow request, with an unknown transfer encoding',
      `${SLOW}GET /health HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n`,
      [200, 400],
    ],
  ])('is answered after the requests before it: %s', async (_, requests, statuses) => {
    const connection = await openConnection(app.url);
    connection.write(requests);
    const received: number[] = [];
    for (const _status of statuses) received.push((await connection.next()).status);
    expect(received).toEqual(statuses);
    await connection.ended;
    expect(connection.rest()).toBe('');
  });

  test.each(['url', 'internalUrl'] as const)(
    'because of UTF-8 in the URL is told to percent-encode it (%s)',
    async listener => {
      for (const [method, path] of [
        ['GET', '/api/endpoints/query/logs.all?project=ü'],
        ['POST', '/api/logs?source_name=ü'],
        ['GET', '/ü'],
      ]) {
        const connection = await openConnection(app[listener]);
        const { status, body } = await connection.ask(
          rawRequest(`${method} ${path}`, { 'X-API-KEY': API_KEY }),
        );
        expect(status).toBe(400);
        const { code, message } = JSON.parse(body).error;
        expect(code).toBe('invalid_body');
        expect(message).toContain('percent-encode');
        await connection.ended;
      }
    },
  );

  test('gets no response after one with Connection: close', async () => {
    const connection = await openConnection(app.url);
    const last = rawRequest('GET /api/endpoints/query/test.sleep?milliseconds=300', {
      'X-API-KEY': API_KEY,
      Connection: 'close',
    });
    connection.write(last + MALFORMED);
    expect((await connection.next()).status).toBe(200);
    await connection.ended;
    expect(connection.rest()).toBe('');
  });

  test('gets its response although the client still sends megabytes', async () => {
    const { hostname, port } = new URL(app.url);
    const socket = connect({ host: hostname, port: Number(port) });
    const errors: Error[] = [];
    socket.on('error', error => errors.push(error));
    let received = '';
    socket.on('data', chunk => {
      received += chunk;
    });
    socket.write('GET /health HTTP/1.1\r\nHost: a\r\n');
    for (let i = 0; i < 100; i++) socket.write(`X-Large: ${'x'.repeat(50_000)}\r\n`);
    await once(socket, 'close');
    expect(errors).toEqual([]);
    expect(received).toMatch(/^HTTP\/1\.1 431 .*headers_too_large[^\n]*$/s);
  });

  test.concurrent('loses its connection even if the client never closes it', async () => {
    const socket = await connectHalfOpen(app.url);
    socket.write(MALFORMED);
    await once(socket, 'end');
    await untilReset(socket);
  });
});

// The time limits of the listener are too long for a test, so this server has the same handler and shorter limits.
describe('a request that does not arrive in time', () => {
  test.concurrent.each([
    ['its headers', 'GET /health HTTP/1.1\r\nHost: a\r\n'],
    ['its body', 'POST /api/logs HTTP/1.1\r\nHost: a\r\nContent-Length: 16777216\r\n\r\n'],
  ])('loses its connection even if the client never closes it: %s', async (_, start) => {
    const limits = { headersTimeout: 50, requestTimeout: 50, connectionsCheckingInterval: 10 };
    const aborted: Promise<unknown>[] = [];
    const server = createServer(limits, (request: IncomingMessage) => aborted.push(once(request, 'aborted')));
    server.on('clientError', respondToParserError);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const socket = await connectHalfOpen(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    let received = '';
    socket.on('data', chunk => {
      received += chunk;
    });
    socket.write(start);
    await once(socket, 'end');
    expect(received).toMatch(/^HTTP\/1\.1 408 .*"code":"request_timeout"/s);
    await untilReset(socket);
    await Promise.all(aborted); // the route no longer waits for the body
    server.close();
    await once(server, 'close');
  });
});
