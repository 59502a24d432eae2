import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { createTempDirectory, PROCESS_API_KEY, startServer } from '../support/process.ts';
import { rawRequest } from '../support/raw-http.ts';

const CONNECTIONS = 60;
const REQUESTS_PER_CONNECTION = 300;

test('216 MB of pipelined requests with wrong tokens do not exhaust a heap of 96 MiB', async () => {
  const directory = createTempDirectory();
  const env = { DENDRO_API_KEY: PROCESS_API_KEY, NODE_OPTIONS: '--max-old-space-size=96' };
  const server = await startServer(['--data', directory.path], { env });
  try {
    const { hostname, port } = new URL(server.url);
    const request = rawRequest('GET /api/endpoints', { 'X-API-KEY': 'wrong', Cookie: 'c'.repeat(12_000) });
    const requests = Buffer.from(request.repeat(REQUESTS_PER_CONNECTION));
    const flood = Array.from({ length: CONNECTIONS }, async () => {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on('error', () => {}); // the server closes the connection while it is written to
      socket.resume().write(requests);
      await new Promise(resolve => socket.once('close', resolve));
    });
    await Promise.all(flood);
    const call = await fetch(`${server.url}/api/endpoints`, { headers: { 'X-API-KEY': PROCESS_API_KEY } });
    expect(call.status).toBe(200);
  } finally {
    expect((await server.stop()).code).toBe(0);
    directory.remove();
  }
});
