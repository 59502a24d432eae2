import { BlockList } from 'node:net';
import { Worker } from 'node:worker_threads';
import { expect, test } from 'vitest';
import { clientAddressReader } from '../../src/http/client-address.ts';
import { listen } from '../../src/http/listener.ts';
import { jsonResponse } from '../../src/http/response.ts';
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

test('a request has its address although the client resets the connection while the response is created', async () => {
  const shared = new Int32Array(new SharedArrayBuffer(8));
  const events: Event[] = [];
  const listener = await listen({
    name: 'public',
    address: { host: '127.0.0.1', port: 0 },
    tls: undefined,
    corsOrigins: [],
    authThrottle: new AuthThrottle(systemTimer),
    clientAddressOf: clientAddressReader(new BlockList()),
    unsentResponses: new UnsentResponses({ maxBytes: 2 ** 27, minBytesPerSecond: 0 }, systemTimer),
    observe: event => void events.push(event),
    hasAccessLog: true,
    routes: [
      {
        path: '/',
        methods: ['GET'],
        // Blocks this thread, so that Node does not notice that the connection is closed.
        handle: async () => {
          Atomics.store(shared, 0, 1);
          Atomics.notify(shared, 0);
          expect(Atomics.wait(shared, 1, 0, 10_000)).not.toBe('timed-out');
          return jsonResponse(200, {});
        },
      },
    ],
  });
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
