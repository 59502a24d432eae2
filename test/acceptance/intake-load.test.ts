// Senders that try to use up the memory or the parsing time of the intake.
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sendLogs } from '../support/logs.ts';
import { createTempDirectory, PROCESS_API_KEY, type ServerProcess, startServer } from '../support/process.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

let directory: ReturnType<typeof createTempDirectory>;
let tokens: TestTokens<'greedy' | 'other'>;
let server: ServerProcess;
beforeAll(async () => {
  directory = createTempDirectory();
  tokens = await createTokens({ greedy: { scopes: ['ingest'] }, other: { scopes: ['ingest'] } });
  server = await startServer(['--data', directory.path, '--tokens', tokens.file], {
    env: { DENDRO_API_KEY: PROCESS_API_KEY, NODE_OPTIONS: '--max-old-space-size=64' },
  });
});
afterAll(async () => {
  await server.stop();
  tokens.remove();
  directory.remove();
});

const record = (id: string) => JSON.stringify({ project: 'p', message: 'm', id });
const send = (id: string, token: string) => sendLogs(server.internalUrl, record(id), { token });

/** A small body that takes long to parse: every line is rejected. */
const LINES = 10_000;
const SLOW_BODY = gzipSync('x\n'.repeat(LINES)).toString('latin1');
const SLOW_REQUESTS = 16;

/** Sends requests with slow bodies on one connection, without waiting for their responses. */
async function startSlowRequests(token: string) {
  const connection = await openConnection(server.internalUrl);
  const headers = {
    'X-API-KEY': token,
    'Content-Type': 'application/x-ndjson',
    'Content-Encoding': 'gzip',
    'Content-Length': String(SLOW_BODY.length),
  };
  const request = rawRequest('POST /api/logs?source_name=edge', headers, SLOW_BODY);
  connection.write(Buffer.from(request.repeat(SLOW_REQUESTS), 'latin1'));
  await expect.poll(() => readMetric(/^dendro_intake_queue_bytes (\d+)$/m)).toBeGreaterThan(0);
  return connection;
}

async function readMetric(line: RegExp): Promise<number> {
  const response = await fetch(`${server.internalUrl}/metrics`, {
    headers: { 'X-API-KEY': PROCESS_API_KEY },
  });
  return Number(line.exec(await response.text())?.[1] ?? 0);
}
const rejectedRecords = () =>
  readMetric(/^dendro_records_rejected_total\{kind="edge",code="invalid_json"\} (\d+)$/m);

test('slow bodies of one token do not delay another token until all of them are parsed', async () => {
  const connection = await startSlowRequests(tokens.secrets.greedy);
  const order: string[] = [];
  const slow = (async () => {
    for (let count = 0; count < SLOW_REQUESTS; count++) expect((await connection.next()).status).toBe(422);
    order.push('slow');
  })();
  expect((await send('quick', tokens.secrets.other)).status).toBe(200);
  order.push('quick');
  await slow;
  connection.close();
  expect(order).toEqual(['quick', 'slow']);
});

test('bodies of closed requests are not parsed', async () => {
  const rejectedBefore = await rejectedRecords();
  const connection = await startSlowRequests(tokens.secrets.greedy);
  connection.close();
  expect((await send('next', tokens.secrets.greedy)).status).toBe(200);
  expect((await rejectedRecords()) - rejectedBefore).toBeLessThan((SLOW_REQUESTS - 1) * LINES);
});

test('a body of one-byte chunks takes no more memory than its length', async () => {
  const connection = await openConnection(server.internalUrl);
  const headers = { 'X-API-KEY': tokens.secrets.greedy, 'Transfer-Encoding': 'chunked' };
  connection.write(rawRequest('POST /api/logs?source_name=edge', headers));
  for (const character of record('chunked')) connection.write(`1\r\n${character}\r\n`);
  // With an object for each chunk, this is several times the heap of the server.
  connection.write('1\r\n \r\n'.repeat(500_000));
  connection.write('0\r\n\r\n');
  expect((await connection.next()).status).toBe(200);
  connection.close();
});

test('the bytes of a body are counted as received, although the parser takes its buffer', async () => {
  const body = record('counted').padEnd(100_000);
  await sendLogs(server.internalUrl, body, { token: tokens.secrets.other, query: '?source_name=storage' });
  expect(await readMetric(/^dendro_intake_bytes_total\{kind="storage"\} (\d+)$/m)).toBe(body.length);
});
