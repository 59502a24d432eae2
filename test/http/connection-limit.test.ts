import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ConnectionLimit } from '../../src/http/connection-limit.ts';
import { rawRequest } from '../support/raw-http.ts';

const MAX = 3;

let servers: [Server, Server];
let sockets: Socket[];
beforeEach(async () => {
  const limit = new ConnectionLimit(MAX);
  sockets = [];
  const create = () => createServer((_, response) => response.end('served'));
  servers = [create(), create()];
  for (const server of servers) {
    limit.apply(server);
    await once(server.listen(0, '127.0.0.1'), 'listening');
  }
});
afterEach(() => {
  for (const socket of sockets) socket.destroy();
  for (const server of servers) server.close();
});

/** Connects to one of the servers and sends a text. Resolves to the response, or to undefined if the connection is closed. */
async function send(text: string, index: 0 | 1): Promise<string | undefined> {
  const { port } = servers[index].address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1' });
  sockets.push(socket);
  socket.on('error', () => {});
  socket.write(text);
  return new Promise(resolve => {
    socket.once('data', data => resolve(String(data)));
    socket.once('close', () => resolve(undefined));
  });
}
const request = (index: 0 | 1) => send(rawRequest('GET /'), index);
const openCount = () => sockets.filter(socket => !socket.closed).length;

test('at the limit, idle connections of both servers are closed for a new one', async () => {
  for (const index of [0, 1, 0] as const) expect(await request(index)).toContain('served');
  expect(await request(0)).toContain('served');
  await expect.poll(openCount).toBe(1);
});

test('at the limit, a new connection is closed if no other is idle, and one is served when another has left', async () => {
  const halfSent = ([0, 1, 0] as const).map(index => send('GET / HTTP/1.1\r\nHost: a\r\nX-', index));
  await expect.poll(async () => (await Promise.all(servers.map(countConnections))).join('+')).toBe('2+1');
  expect(await request(1)).toBeUndefined();
  sockets[0]?.destroy();
  await halfSent[0];
  await expect.poll(() => request(1)).toContain('served');
});

function countConnections(server: Server): Promise<number> {
  return new Promise(resolve => server.getConnections((_, count) => resolve(count)));
}
