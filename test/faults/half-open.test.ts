import { execFileSync } from 'node:child_process';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reportFault } from '../support/fault-report.ts';
import { createTempDirectory, PROCESS_API_KEY, type ServerProcess, startServer } from '../support/process.ts';

const DESCRIPTORS = 256;

const directory = createTempDirectory();
let server: ServerProcess;
beforeAll(async () => {
  server = await startServer(['--data', directory.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
  execFileSync('prlimit', ['--pid', String(server.pid), `--nofile=${DESCRIPTORS}:${DESCRIPTORS}`]);
});
afterAll(async () => {
  await server.stop();
  directory.remove();
});

const isServed = () =>
  fetch(`${server.url}/health`, { signal: AbortSignal.timeout(1_000) }).then(
    ({ ok }) => ok,
    () => false,
  );

// The time limit of headers is 15 s, it is checked every 2 s, and the connection is closed 2 s later.
test('clients that send only part of their headers hold all file descriptors only until the time limit', async () => {
  const { hostname, port } = new URL(server.url);
  const sockets: Socket[] = [];
  for (let i = 0; i < DESCRIPTORS + 4; i++) {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    socket.on('error', () => {});
    socket.resume().write('GET /health HTTP/1.1\r\nHost: a\r\nX-');
    sockets.push(socket);
  }
  try {
    await expect.poll(isServed).toBe(false);
    await expect.poll(isServed, { timeout: 60_000, interval: 500 }).toBe(true);
    const outcome =
      'clients use all file descriptors and send only part of their headers: others are served after the time limit of 15 s';
    reportFault({ fault: 'clients that vanish', runs: sockets.length, outcome, lost: 0, duplicated: 0 });
  } finally {
    for (const socket of sockets) socket.destroy();
  }
});
