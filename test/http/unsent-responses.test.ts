import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { KEY_VARIABLES } from '../../src/config.ts';
import { MAX_LAG_BYTES } from '../../src/domain/limits.ts';
import { API_KEY, startTestApp, type TestApp } from '../support/app.ts';
import { BUILT_IN, EXPLORE, testEndpoint } from '../support/custom-endpoints.ts';
import { ManualTimer } from '../support/manual-timer.ts';
import { rawRequest } from '../support/raw-http.ts';
import { edgeRecord, functionEdgeRecord } from '../support/record.ts';
import { useApp, useEndpoints } from '../support/use-app.ts';

/** More than the socket buffers of both sides hold. */
const LARGE_BYTES = 14_000_000;
const MIN_RATE = 32_768;
/** A client that reads this much in this time reads at the minimum rate. */
const PERIOD_MS = 15_000;
const BYTES_PER_PERIOD = (MIN_RATE * PERIOD_MS) / 1000;

/** Its result is smaller than the slices in which large responses are written. */
const MEDIUM = testEndpoint('test.medium', {
  parameters: { letter: {} },
  columns: { text: 'text' },
  isCached: true,
  sql: 'select repeat($letter, 60000) as text',
});

const sockets: Socket[] = [];

describe('responses that a client does not read', () => {
  const timer = new ManualTimer();
  const custom = useEndpoints({ medium: MEDIUM });
  const app = useApp(
    {
      unsentBytes: LARGE_BYTES,
      minDownloadRate: MIN_RATE,
      cacheBytes: 1_000_000,
      endpointFolders: { builtIn: BUILT_IN, packs: [EXPLORE], custom: custom.folder },
    },
    timer,
  );
  beforeAll(async () => {
    await appendLarge(app);
    await app.append('edge', [edgeRecord({ project: 'small', at: '2026-11-14T12:00:00Z' })]);
    await app.append('function_edge', [functionEdgeRecord({ at: '2026-11-14T12:00:00Z', project: 'small' })]);
  });
  afterEach(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await expect.poll(readUnsentBytes).toBe(0);
  });

  const readUnsentBytes = () => readUnsentBytesOf(app);
  const openSlowReader = (requests = 1) => openSlowReaderOf(app, requests);

  test('at the limit, a query gets 503 with Retry-After and does not run; a cache hit is served', async () => {
    const stats = { project: 'small', interval: '1day' };
    await app.query('functions.invocation-stats', stats);
    const { socket } = await openSlowReader();
    await expect.poll(readUnsentBytes).toBeGreaterThan(LARGE_BYTES);
    const completedBefore = app.events.filter(({ type }) => type === 'query_completed').length;
    const refused = await app.query('logs.all', { project: 'small' });
    expect([refused.status, refused.error.code]).toEqual([503, 'unavailable']);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(app.events.filter(({ type }) => type === 'query_completed')).toHaveLength(completedBefore); // the store got no query
    expect((await app.query('functions.invocation-stats', stats)).headers.get('cache-status')).toMatch(/hit/);
    socket.destroy();
    await expect.poll(readUnsentBytes).toBe(0);
    expect((await app.query('logs.all', { project: 'small' })).rows).toHaveLength(1);
  });

  test('results that arrive after the limit is reached get 503', async () => {
    const before = app.events.length;
    await openSlowReader(4);
    const completed = () => app.events.slice(before).filter(event => event.type === 'request_completed');
    await expect.poll(() => completed().length).toBe(4);
    const statuses = completed().map(event => 'status' in event && event.status);
    expect(statuses.sort()).toEqual([200, 503, 503, 503]);
  });

  test('a client that stops reading is disconnected after a bounded time, and its bytes are released', async () => {
    const reader = await openSlowReader();
    await expect.poll(readUnsentBytes).toBeGreaterThan(LARGE_BYTES);
    await timer.advance(PERIOD_MS);
    expect(await readUnsentBytes()).toBeGreaterThan(LARGE_BYTES);
    await timer.advance((MAX_LAG_BYTES / MIN_RATE) * 1000 - PERIOD_MS);
    await expect.poll(readUnsentBytes).toBe(0);
    const closed = new Promise(resolve => reader.socket.once('close', resolve));
    reader.pauseAt = Number.POSITIVE_INFINITY;
    reader.socket.resume();
    await closed;
    expect(reader.received).toBeLessThan(LARGE_BYTES); // what the system's buffers held, and no more
  });

  test('a client that reads at the minimum rate gets the whole response', async () => {
    const reader = await openSlowReader();
    while (reader.received < LARGE_BYTES && !reader.socket.destroyed) {
      await readMore(reader, BYTES_PER_PERIOD);
      await timer.advance(PERIOD_MS);
    }
    expect(reader.received).toBeGreaterThan(LARGE_BYTES);
  });

  test.each([
    ['results of 60 KB', '/api/endpoints/query/test.medium?letter=x'],
    ['the OpenAPI document', '/openapi.json'],
  ])(
    'a client that pipelines requests and reads at the minimum rate gets all responses: %s',
    async (_, path) => {
      const { text } = await app.get(path);
      const requests = Math.ceil(LARGE_BYTES / text.length);
      const reader = await openSlowReaderOf(app, requests, path);
      while (reader.received < LARGE_BYTES && !reader.socket.destroyed) {
        await readMore(reader, BYTES_PER_PERIOD);
        await timer.advance(PERIOD_MS);
      }
      expect(reader.received).toBeGreaterThanOrEqual(LARGE_BYTES);
    },
  );
});

describe('slow readers of one token', () => {
  const scopes = KEY_VARIABLES.DENDRO_API_KEY;
  const other = { name: 'other', secret: 'another-key-of-the-suite', scopes };
  const environmentKeys = [{ name: 'slow', secret: API_KEY, scopes }, other];
  let app: TestApp;
  beforeAll(async () => {
    // A result counts twice its size until it is encoded. Half of this limit is enough for three unread responses.
    app = await startTestApp({ unsentBytes: 9 * LARGE_BYTES, environmentKeys }, new ManualTimer());
    await appendLarge(app);
  });
  afterAll(async () => {
    for (const socket of sockets.splice(0)) socket.destroy();
    await app.close();
  });

  test('reach the limit of their token, and a large query with another token gets 200', async () => {
    const statuses: number[] = [];
    do {
      const { head } = await openSlowReaderOf(app);
      statuses.push(Number(head.split(' ')[1]));
    } while (statuses.at(-1) === 200);
    expect(statuses).toEqual([200, 200, 200, 503]);
    const { status, text } = await app.get(LARGE_QUERY, { headers: { 'X-API-KEY': other.secret } });
    expect([status, text.length > LARGE_BYTES]).toEqual([200, true]);
  });
});

const LARGE_QUERY = '/api/endpoints/query/logs.all?project=large';

async function appendLarge(app: TestApp): Promise<void> {
  const message = 'x'.repeat(1_000_000);
  const records = Array.from({ length: 14 }, (_, i) =>
    edgeRecord({ project: 'large', at: `2026-11-14T12:00:${10 + i}Z`, message }),
  );
  await app.append('edge', records);
}

async function readUnsentBytesOf(app: TestApp): Promise<number> {
  const response = await fetch(`${app.internalUrl}/metrics`, { headers: { 'X-API-KEY': API_KEY } });
  return Number(/^dendro_unsent_bytes (\d+)$/m.exec(await response.text())?.[1]);
}

interface SlowReader {
  readonly socket: Socket;
  /** The first bytes of the first response. */
  readonly head: string;
  received: number;
  pauseAt: number;
}

/** Sends requests, and stops reading with the first bytes of the first response. */
async function openSlowReaderOf(app: TestApp, requests = 1, path = LARGE_QUERY): Promise<SlowReader> {
  const { hostname, port } = new URL(app.url);
  const socket = connect({ host: hostname, port: Number(port) });
  sockets.push(socket);
  socket.on('error', () => {});
  socket.write(rawRequest(`GET ${path}`, { 'X-API-KEY': API_KEY }).repeat(requests));
  const head = await new Promise<Buffer>(resolve => socket.once('data', resolve));
  socket.pause();
  const reader = { socket, head: head.toString('latin1'), received: head.length, pauseAt: 0 };
  socket.on('data', data => {
    reader.received += data.length;
    if (reader.received >= reader.pauseAt) socket.pause();
  });
  return reader;
}

/** Reads this many bytes or slightly more, or the rest of the response. */
async function readMore(reader: SlowReader, bytes: number): Promise<void> {
  reader.pauseAt = Math.min(reader.received + bytes, LARGE_BYTES);
  const { socket } = reader;
  socket.resume();
  await expect.poll(() => socket.isPaused() || socket.destroyed, { interval: 1 }).toBe(true);
}
