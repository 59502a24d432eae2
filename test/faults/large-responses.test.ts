// Results that are far larger than the limits, in a process with a small heap: every response is clipped, and clients that do not
// read their responses take bounded memory.
import { readFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LogLines, toLogLines } from '../../src/domain/log-line.ts';
import { openStore } from '../../src/store/open-store.ts';
import { fetchResponse, testStoreOptions } from '../support/app.ts';
import { createTempDirectory, PROCESS_API_KEY, type ServerProcess, startServer } from '../support/process.ts';
import { rawRequest } from '../support/raw-http.ts';
import { edgeRecord } from '../support/record.ts';

const RECORDS = 95;
/** As JSON, all records together are longer than the longest string of V8. */
const MESSAGE = '\u0001'.repeat(1_000_000);
const RESPONSE_BYTES = 16 * 1024 * 1024;
const SLOW_READERS = 19;

describe('95 records of 1 MB that grow sixfold in JSON', () => {
  const directory = createTempDirectory();
  const sockets: Socket[] = [];
  let server: ServerProcess;
  beforeAll(async () => {
    const store = await openStore(testStoreOptions(directory.path));
    await store.append(createBatches());
    await store.close();
    const env = { DENDRO_API_KEY: PROCESS_API_KEY, NODE_OPTIONS: '--max-old-space-size=256' };
    server = await startServer(['--data', directory.path], { env });
  }, 120_000);
  afterAll(async () => {
    for (const socket of sockets) socket.destroy();
    await server?.stop();
    directory.remove();
  });

  const send = (search: string) =>
    fetchResponse(`${server.url}/api/endpoints/query/logs.all?project=alpha${search}`, {
      headers: { 'X-API-KEY': PROCESS_API_KEY },
    });

  test.each([
    ['json', 2],
    ['ndjson', 2],
    ['csv', 16],
  ])('logs.all as %s returns the newest %i records and reports the byte limit', async (format, count) => {
    const { status, headers, text } = await send(`&format=${format}`);
    expect([status, headers.get('dendro-clipped')]).toEqual([200, 'byte-limit']);
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(RESPONSE_BYTES);
    for (let index = 0; index < RECORDS; index++)
      expect(text.includes(`record ${index}.`)).toBe(index < count);
  });

  test('19 clients that do not read take bounded memory, and the service recovers when they are gone', async () => {
    const statuses = await Promise.all(Array.from({ length: SLOW_READERS }, openSlowReader));
    expect(statuses.filter(status => status === 200).length).toBeGreaterThan(0);
    expect(statuses.filter(status => status !== 200 && status !== 503)).toEqual([]);
    const peakKilobytes = Number(
      /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'))?.[1],
    );
    expect(peakKilobytes).toBeLessThan(1_500_000);
    for (const socket of sockets.splice(0)) socket.destroy();
    await expect.poll(async () => (await send('&format=csv')).status).toBe(200);
  });

  /** Returns the status, and reads nothing after the first bytes. */
  function openSlowReader(): Promise<number> {
    const { hostname, port } = new URL(server.url);
    const socket = connect({ host: hostname, port: Number(port) });
    sockets.push(socket);
    const path = '/api/endpoints/query/logs.all?project=alpha&format=csv';
    socket.write(rawRequest(`GET ${path}`, { 'X-API-KEY': PROCESS_API_KEY }));
    return new Promise((resolve, reject) => {
      socket.once('error', reject);
      socket.once('data', data => {
        socket.pause();
        resolve(Number(data.toString('latin1').split(' ')[1]));
      });
    });
  }
});

async function* createBatches(): AsyncGenerator<LogLines> {
  const now = BigInt(Date.now()) * 1000n;
  for (let index = 0; index < RECORDS; index++) {
    const at = now - BigInt(index + 1) * 1_000_000n;
    yield toLogLines('edge', [edgeRecord({ id: `record ${index}.`, at, message: MESSAGE })]);
  }
}
