import { BlockList } from 'node:net';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { clientAddressReader } from '../../src/http/client-address.ts';
import { ConnectionLimit } from '../../src/http/connection-limit.ts';
import { listen } from '../../src/http/listener.ts';
import { jsonResponse } from '../../src/http/response.ts';
import type { Route } from '../../src/http/router.ts';
import { UnsentResponses } from '../../src/http/unsent-responses.ts';
import type { Event } from '../../src/observe/event.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { AuthThrottle } from '../../src/token/auth-throttle.ts';

/** Sends a request, resets the connection when the first number is 1, and then sets the second one. */
const CLIENT = `
  const { connect } = require('node:net');
  const { workerData: { port, shared } } = require('node:worker_threads');
  const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n'));
  socket.once('connect', () => {
    Atomics.wait(shared, 0, 0);
    socket.once('close', () => {
      Atomics.store(shared, 1, 1);
      Atomics.notify(shared, 1);
    });
    setTimeout(() => socket.resetAndDestroy(), 10);
  });
`;

const listenFor = (route: Pick<Route, 'handle' | 'cacheHit'>, events: Event[]) =>
  listen({
    name: 'public',
    address: { host: '127.0.0.1', port: 0 },
    tls: undefined,
    corsOrigins: [],
    connectionLimit: new ConnectionLimit(),
    authThrottle: new AuthThrottle(systemTimer),
    clientAddressOf: clientAddressReader(new BlockList()),
    unsentResponses: new UnsentResponses({ maxBytes: 2 ** 27, minBytesPerSecond: 0 }, systemTimer),
    observe: event => void events.push(event),
    hasAccessLog: true,
    routes: [{ path: '/', methods: ['GET'], ...route }],
  });

test('a cache hit is not counted if the connection is closed before its response is sent', async () => {
  const events: Event[] = [];
  let closesConnection = false;
  const cacheHit: Route['cacheHit'] = ({ socket }) => {
    if (closesConnection) socket.destroy();
    return { endpoint: 'test', response: jsonResponse(200, {}), durationMs: 1 };
  };
  const listener = await listenFor({ cacheHit, handle: async () => jsonResponse(500, {}) }, events);
  try {
    expect((await fetch(listener.url)).status).toBe(200);
    closesConnection = true;
    await expect(fetch(listener.url)).rejects.toThrow();
    expect(events.map(({ type }) => type)).toEqual(['request_completed', 'access']);
  } finally {
    await listener.close();
  }
});

test('a request has its address although the client resets the connection while the response is created', async () => {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const events: Event[] = [];
  // Blocks this thread, so that Node does not notice that the connection is closed.
  const handle = async () => {
    Atomics.store(shared, 0, 1);
    Atomics.notify(shared, 0);
    expect(Atomics.wait(shared, 1, 0, 10_000)).not.toBe('timed-out');
    return jsonResponse(200, {});
  };
  const listener = await listenFor({ handle }, events);
  const client = new Worker(CLIENT, {
    eval: true,
    workerData: { port: Number(new URL(listener.url).port), shared },
  });
  try {
    await expect.poll(() => events.map(({ type }) => type)).toContain('access');
    expect(events).toContainEqual(
      expect.objectContaining({ type: 'access', status: 200, address: '127.0.0.1' }),
    );
  } finally {
    await client.terminate();
    await listener.close();
  }
});
