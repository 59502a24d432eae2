import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { API_KEY, fetchResponse, startTestApp } from '../support/app.ts';
import { idsOf } from '../support/logs.ts';
import { openConnection, type RawConnection, rawRequest } from '../support/raw-http.ts';
import { useApp } from '../support/use-app.ts';

const MIB = 1024 * 1024;
const REQUEST_LINE = 'POST /api/logs?source_name=edge';
const HEADERS = { 'X-API-KEY': API_KEY, 'Content-Type': 'application/json' };

let connection: RawConnection;
const app = useApp({ intakeQueueBytes: 4 * MIB });
afterEach(() => connection.close());

const record = (project: string, id: string) => JSON.stringify({ project, message: 'm', id });
const post = (body: string, headers: Record<string, string> = {}) =>
  rawRequest(
    REQUEST_LINE,
    { ...HEADERS, 'Content-Length': String(Buffer.byteLength(body)), ...headers },
    body,
  );
const toChunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const queuedBytes = async () => {
  const { text } = await fetchResponse(`${app.internalUrl}/metrics`, { headers: HEADERS });
  return Number(/^dendro_intake_queue_bytes (.*)$/m.exec(text)?.[1]);
};

/** Sends another request on the same connection. */
const expectStillOpen = async (project: string) => {
  const { status } = await connection.ask(post(record(project, 'after')));
  expect(status).toBe(200);
  await expect.poll(() => idsOf(app, project)).toEqual(['after']);
};

describe('error responses before the body was read', () => {
  const body = 'x'.repeat(2 * MIB);

  test.each<[number, Record<string, string>, string]>([
    [401, { 'X-API-KEY': '' }, body],
    [415, { 'Content-Type': 'text/xml' }, body],
    [429, {}, 'x'.repeat(5 * MIB)], // more than the queue holds
  ])('the connection can be reused after %i', async (status, sent, content) => {
    connection = await openConnection(app.internalUrl);
    const response = await connection.ask(post(content, sent));
    expect(response.status).toBe(status);
    if (status === 429) expect(response.headers['retry-after']).toMatch(/^[1-9]\d*$/);
    await expectStillOpen(`after-${status}`);
  });

  test('the connection can be reused after 413 for a Content-Length beyond the limit', async () => {
    connection = await openConnection(app.internalUrl);
    const response = connection.ask(post('', { 'Content-Length': String(17 * MIB) }));
    for (let sent = 0; sent < 17; sent++) connection.write(Buffer.alloc(MIB, 0x20));
    expect((await response).status).toBe(413);
    await expectStillOpen('after-413-declared');
  });

  test('the connection can be reused after 429 in the middle of a chunked body', async () => {
    connection = await openConnection(app.internalUrl);
    connection.write(rawRequest(REQUEST_LINE, { ...HEADERS, 'Transfer-Encoding': 'chunked' }));
    for (let sent = 0; sent < 12; sent++) connection.write(toChunk(' '.repeat(MIB)));
    connection.write('0\r\n\r\n');
    expect((await connection.next()).status).toBe(429);
    await expectStillOpen('after-429-chunked');
    expect(await queuedBytes()).toBeLessThan(MIB);
  });
});

test('a chunked body over 16 MiB gets 413 before its end, and the connection can be reused', async () => {
  const largeQueueApp = await startTestApp();
  try {
    connection = await openConnection(largeQueueApp.internalUrl);
    connection.write(rawRequest(REQUEST_LINE, { ...HEADERS, 'Transfer-Encoding': 'chunked' }));
    for (let sent = 0; sent < 17; sent++) connection.write(toChunk(' '.repeat(MIB)));
    expect((await connection.next()).status).toBe(413);
    for (let sent = 0; sent < 8; sent++) connection.write(toChunk(' '.repeat(MIB)));
    connection.write('0\r\n\r\n');
    expect((await connection.ask(post(record('p', 'after')))).status).toBe(200);
  } finally {
    await largeQueueApp.close();
  }
});

test('Expect: 100-continue gets 100 before the body is sent', async () => {
  connection = await openConnection(app.internalUrl);
  const body = record('expect', 'a');
  const header = rawRequest(REQUEST_LINE, {
    ...HEADERS,
    Expect: '100-continue',
    'Content-Length': String(Buffer.byteLength(body)),
  });
  expect((await connection.ask(header)).status).toBe(100);
  connection.write(body);
  expect((await connection.next()).status).toBe(200);
});

test('pipelined requests with chunked bodies each get a response', async () => {
  connection = await openConnection(app.internalUrl);
  const chunked = (id: string) =>
    rawRequest(REQUEST_LINE, { ...HEADERS, 'Transfer-Encoding': 'chunked' }) +
    [...record('chunks', id)].map(toChunk).join('') +
    '0\r\n\r\n';
  connection.write(chunked('a') + chunked('b') + post(record('chunks', 'c')));
  for (let responses = 0; responses < 3; responses++) expect((await connection.next()).status).toBe(200);
  await expect.poll(() => idsOf(app, 'chunks')).toEqual(['a', 'b', 'c']);
});

describe('a sender that closes the connection in the middle of the body', () => {
  test.each([
    ['a body with Content-Length', { 'Content-Length': '1000000' }, '[{"project":"broken","message":"m"}'],
    ['a chunked body', { 'Transfer-Encoding': 'chunked' }, toChunk('[{"project":"broken","message":"m"}]')],
    ['a chunk', { 'Transfer-Encoding': 'chunked' }, 'ffff\r\n[{"project":"broken","message":"m"}]'],
  ])('no record is stored and no memory stays reserved: %s', async (_, framing, part) => {
    const before = app.events.length;
    connection = await openConnection(app.internalUrl);
    connection.write(rawRequest(REQUEST_LINE, { ...HEADERS, ...framing } as Record<string, string>, part));
    await expect.poll(queuedBytes).toBeGreaterThan(0);
    connection.close();
    await expect.poll(queuedBytes).toBe(0);
    await sleep(50);
    expect(await idsOf(app, 'broken')).toEqual([]);
    // On a busy machine the timer, which is faster than the clock of the test, gets far enough for the background job to notice.
    const unrelated = ['request_completed', 'records_applied', 'clock_jumped'];
    expect(app.events.slice(before).filter(({ type }) => !unrelated.includes(type))).toEqual([]);
    // No response was sent, so none is counted: all that is counted is the test's own requests.
    const statuses = app.events
      .slice(before)
      .flatMap(event => (event.type === 'request_completed' ? event.status : []));
    expect(new Set(statuses)).toEqual(new Set([200]));
  });
});

test('a body with invalid chunk framing gets 400 and is not stored', async () => {
  connection = await openConnection(app.internalUrl);
  connection.write(
    rawRequest(
      REQUEST_LINE,
      { ...HEADERS, 'Transfer-Encoding': 'chunked' },
      `${toChunk(record('framing', 'a'))}zz\r\n`,
    ),
  );
  expect((await connection.next()).status).toBe(400);
  await connection.ended;
  expect(await idsOf(app, 'framing')).toEqual([]);
  expect(await queuedBytes()).toBe(0);
});
