// The memory that the bodies of log requests may hold, and how fast they must arrive.
import { afterAll, describe, expect, test } from 'vitest';
import { API_KEY } from '../support/app.ts';
import { sendLogs } from '../support/logs.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { openConnection, type RawConnection, rawRequest } from '../support/raw-http.ts';
import { useApp, useTokens } from '../support/use-app.ts';

const MIB = 1024 * 1024;
const timer = new ManualTimer();

const connections: RawConnection[] = [];
const tokens = useTokens({ greedy: { scopes: ['ingest'] }, other: { scopes: ['ingest'] } });
const app = useApp({ tokensFile: tokens.file, minUploadRate: 1024 }, timer);
afterAll(async () => {
  for (const connection of connections) connection.close();
});

/** Starts a request whose body never becomes complete. */
async function startRequest(secret: string, headers: Record<string, string>): Promise<RawConnection> {
  const connection = await openConnection(app.internalUrl);
  connections.push(connection);
  connection.write(rawRequest('POST /api/logs?source_name=edge', { 'X-API-KEY': secret, ...headers }));
  return connection;
}

const queuedBytes = async () => {
  const response = await fetch(`${app.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
  return Number(/^dendro_intake_queue_bytes (\d+)$/m.exec(await response.text())?.[1]);
};
/** Closes all connections, and waits until the store has the records of the others. */
const closeAll = async () => {
  for (const connection of connections.splice(0)) connection.close();
  const pass = () => app.pass(100);
  await expect.poll(() => pass().then(queuedBytes)).toBe(0);
};
const sendFrom = (secret: string, bytes: number) =>
  sendLogs(app.internalUrl, JSON.stringify({ project: 'p', message: 'm' }).padEnd(bytes), { token: secret });

describe('memory of bodies', () => {
  test('requests that declare 16 MiB and send nothing hold no memory for it', async () => {
    const declared = { 'Content-Length': String(16 * MIB) };
    for (let count = 0; count < 8; count++) await startRequest(tokens.secrets.greedy, declared);
    await expect.poll(queuedBytes).toBeGreaterThan(0);
    expect(await queuedBytes()).toBeLessThan(MIB);
    expect((await sendFrom(tokens.secrets.greedy, 16 * MIB)).status).toBe(200);
    await closeAll();
  });

  test('one token gets 429 above half of the memory, and another token can still send 15 MiB', async () => {
    const declared = { 'Content-Length': String(16 * MIB) };
    const part = Buffer.alloc(15 * MIB, ' ');
    for (let count = 1; count <= 2; count++) {
      (await startRequest(tokens.secrets.greedy, declared)).write(part);
      await expect.poll(queuedBytes).toBeGreaterThanOrEqual(count * part.length);
    }
    const refused = await sendFrom(tokens.secrets.greedy, 15 * MIB);
    expect([refused.status, refused.error.code]).toEqual([429, 'rate_limited']);
    expect(refused.error.message).toMatch(/share of the memory/);
    expect(refused.headers.get('retry-after')).toMatch(/^\d+$/);
    expect((await sendFrom(tokens.secrets.other, 15 * MIB)).status).toBe(200);
    await closeAll();
  });

  test('a chunked body of small chunks is received completely, and counts with its length', async () => {
    const connection = await startRequest(tokens.secrets.greedy, { 'Transfer-Encoding': 'chunked' });
    const body = JSON.stringify({ project: 'p', message: 'x'.repeat(50_000) });
    const chunks = Array.from(body, character => `1\r\n${character}\r\n`);
    connection.write(chunks.slice(0, -1).join(''));
    await expect.poll(queuedBytes).toBeGreaterThanOrEqual(body.length);
    expect(await queuedBytes()).toBeLessThan(body.length + 16 * 1024);
    connection.write(`${chunks.at(-1)}0\r\n\r\n`);
    expect((await connection.next()).status).toBe(200);
    await closeAll();
  });
});

describe('minimum upload rate', () => {
  test('a body that arrives more slowly gets 408, its connection is closed, and its memory is released', async () => {
    const connection = await startRequest(tokens.secrets.greedy, { 'Content-Length': '1000000' });
    connection.write(Buffer.alloc(20_000, ' '));
    await expect.poll(queuedBytes).toBeGreaterThan(20_000);
    await app.pass(10_000); // 20,000 bytes in 10 s are enough
    connection.write(Buffer.alloc(30_000, ' '));
    await expect.poll(queuedBytes).toBeGreaterThan(50_000);
    await app.pass(10_000);
    expect(connection.rest()).toBe('');
    await app.pass(10_000);
    const { status, headers, body } = await connection.next();
    expect([status, headers['connection'], JSON.parse(body).error.code]).toEqual([
      408,
      'close',
      'request_timeout',
    ]);
    expect(body).toContain('1024 bytes per second');
    await connection.ended;
    await expect.poll(queuedBytes).toBe(0);
  });
});
