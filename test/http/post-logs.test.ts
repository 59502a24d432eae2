import * as zlib from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { ACCEPTED_NAMES, kindOf } from '../../src/logs/source-name.ts';
import { systemTimer } from '../../src/system/timer.ts';
import { API_KEY, fetchResponse, startTestApp } from '../support/app.ts';
import { idsOf, type SendOptions, sendLogs } from '../support/logs.ts';
import { useApp, useTokens } from '../support/use-app.ts';

const tokens = useTokens({
  all: { scopes: ['ingest'] },
  edge: { scopes: ['ingest:edge'] },
  reader: { scopes: ['query', 'metrics'] },
  pinned: { scopes: ['ingest'], projects: ['mine', 'ours'] },
  slow: { scopes: ['ingest'], rate: 1e-6 },
});
const app = useApp({ tokensFile: tokens.file });

const send = (body: unknown, options?: SendOptions) => sendLogs(app.internalUrl, body, options);
const line = (project: string, id?: string) =>
  JSON.stringify({ project, message: 'hello', ...(id && { id }) });
const NDJSON = { 'Content-Type': 'application/x-ndjson' };

describe('POST /api/logs: formats of the body', () => {
  type Body = [form: string, createBody: (a: string, b: string) => string, headers?: Record<string, string>];
  const BODIES: Body[] = [
    ['an array', (a, b) => `[${a},${b}]`],
    ['a batch', (a, b) => `{"batch":[${a},${b}]}`],
    ['a batch next to other fields', (a, b) => `{"sent_by":"x","batch":[${a},${b}]}`],
    ['JSON after a byte order mark', (a, b) => `\ufeff[${a},${b}]`],
    ['NDJSON with a last newline', (a, b) => `${a}\n${b}\n`, NDJSON],
    ['NDJSON without a last newline', (a, b) => `${a}\n${b}`, NDJSON],
    ['NDJSON with CRLF and blank lines', (a, b) => `\r\n${a}\r\n \r\n${b}\r\n\r\n`, NDJSON],
    ['NDJSON after a byte order mark', (a, b) => `\ufeff${a}\n${b}`, NDJSON],
  ];
  test.each(BODIES)(
    '%s is accepted, and queries return its records',
    async (form, createBody, headers = {}) => {
      const project = form.replaceAll(' ', '-');
      const response = await send(createBody(line(project, 'a'), line(project, 'b')), { headers });
      expect(response.status).toBe(200);
      expect(response.headers.get('content-type')).toBe('application/json; charset=utf-8');
      expect(JSON.parse(response.text)).toEqual({ message: 'Logged!', accepted: 2, rejected: 0, errors: [] });
      await expect.poll(() => idsOf(app, project)).toEqual(['a', 'b']);
    },
  );

  test('records of a batch without ids and timestamps keep their order in logs.all', async () => {
    const messages = Array.from({ length: 100 }, (_, index) => `line ${index}`);
    await send(messages.map(message => ({ project: 'unstamped', message })));
    const storedMessages = async () => {
      const { rows } = await app.query('logs.all', { project: 'unstamped' });
      return rows.map(row => row['event_message']);
    };
    await expect.poll(storedMessages).toEqual(messages);
  });

  test('the time and the message of pino are read, and its batch is stored once if it is sent again', async () => {
    const time = Number(app.now() / 1000n);
    const body = [{ level: 30, time, msg: 'hello', project: 'pino', pid: 7 }];
    for (let sent = 0; sent < 2; sent++) expect((await send(body)).status).toBe(200);
    const storedRecords = async () => {
      const { rows } = await app.query('logs.all', { project: 'pino' });
      return rows.map(({ timestamp, event_message, metadata }) => ({ timestamp, event_message, metadata }));
    };
    const metadata = { level: 30, pid: 7 };
    const stored = [{ timestamp: time * 1000, event_message: 'hello', metadata }];
    await expect.poll(storedRecords).toEqual(stored);
  });

  test('a record of the longest project can be queried, and one of a longer project is rejected', async () => {
    const longest = 'é'.repeat(1024);
    const { status, text } = await send(
      [line(`${longest}é`), line(longest, 'kept')].map(json => JSON.parse(json)),
    );
    expect(status).toBe(200);
    const { accepted, errors } = JSON.parse(text);
    expect([accepted, errors.length, errors[0].index, errors[0].code]).toEqual([1, 1, 0, 'invalid_project']);
    await expect.poll(() => idsOf(app, longest)).toEqual(['kept']);
    expect((await app.query('logs.all', { project: `${longest}é` })).status).toBe(400);
  });

  test('a U+FEFF at the start of an id and of a message is stored', async () => {
    await send({ project: 'feff', id: '\ufeffid', message: '\ufeffa message of more than 12 bytes' });
    const stored = async () => {
      const { rows } = await app.query('logs.all', { project: 'feff' });
      return rows.map(row => [row['id'], row['event_message']]);
    };
    await expect.poll(stored).toEqual([['\ufeffid', '\ufeffa message of more than 12 bytes']]);
  });

  test('an NDJSON line that is not JSON is one rejected record, and blank lines are not counted', async () => {
    const body = `${line('lines', 'a')}\n{broken\n\n${line('lines', 'b')}\n[1]\n`;
    const response = await send(body, { headers: NDJSON });
    expect(response).toMatchObject({ status: 200, accepted: 2, rejected: 2 });
    expect(response.errors.map(({ index, code }) => [index, code])).toEqual([
      [1, 'invalid_json'],
      [3, 'not_an_object'],
    ]);
    await expect.poll(() => idsOf(app, 'lines')).toEqual(['a', 'b']);
  });

  test.each([
    ['an empty array', '[]', {}],
    ['an empty batch', '{"batch":[]}', {}],
    ['empty NDJSON', '', NDJSON],
    ['NDJSON of blank lines', '\n\r\n  \n', NDJSON],
  ])('%s is an empty batch and gets 200', async (_, body, headers) => {
    for (let time = 0; time < 2; time++) {
      const { status, text } = await send(body, { headers });
      expect(status).toBe(200);
      expect(JSON.parse(text)).toEqual({ message: 'Logged!', accepted: 0, rejected: 0, errors: [] });
    }
  });

  test.each([
    ['empty', ''],
    ['half an object', '{"project":"p"'],
    ['NDJSON', `${line('p')}\n${line('p')}`],
    ['a bare word', 'hello'],
    ['two values', '{} {}'],
    ['a trailing comma', '[{"project":"p","message":"m"},]'],
  ])('a JSON body that is %s gets 400', async (_, body) => {
    const { status, error } = await send(body);
    expect([status, error.code]).toEqual([400, 'invalid_body']);
    expect(error.message).toMatch(/^invalid JSON: /);
  });

  test('bytes that are not UTF-8 become U+FFFD', async () => {
    const [before, after] = line('bad-utf8', 'a').split('hello');
    const body = Buffer.concat([
      Buffer.from(`${before}a`),
      Buffer.from([0xff, 0xc3]),
      Buffer.from(`b${after}`),
    ]);
    expect((await send(body)).accepted).toBe(1);
    const rows = async () => (await app.query('logs.all', { project: 'bad-utf8' })).rows;
    await expect.poll(rows).toMatchObject([{ event_message: 'a\ufffd\ufffdb' }]);
  });

  test('JSON is read from a body of any general Content-Type, and one object is a batch', async () => {
    const types = [undefined, 'application/json; charset=utf-8', 'APPLICATION/JSON', 'text/plain'];
    for (const type of [...types, 'application/octet-stream']) {
      const bytes = new TextEncoder().encode(line('types', type)); // fetch adds no Content-Type to bytes
      const response = await fetchResponse(`${app.internalUrl}/api/logs?source=edge`, {
        method: 'POST',
        body: bytes,
        headers: { 'X-API-KEY': API_KEY, ...(type && { 'Content-Type': type }) },
      });
      expect(response.status, type).toBe(200);
    }
    await expect.poll(() => idsOf(app, 'types')).toHaveLength(5);
    for (const type of [
      'application/x-www-form-urlencoded',
      'text/html',
      'application/msgpack',
      'json',
      '__proto__',
      ' ',
    ]) {
      const { status, error } = await send(line('p'), { headers: { 'Content-Type': type } });
      expect([status, error.code]).toEqual([415, 'unsupported_media_type']);
      expect(error.message).toMatch(/application\/x-ndjson/);
    }
  });
});

describe('POST /api/logs: Content-Encoding', () => {
  const half = (body: string) => [body.slice(0, 9), body.slice(9)];
  const COMPRESSORS: [name: string, coding: string, compress: (body: string) => Buffer][] = [
    ['gzip', 'gzip', zlib.gzipSync],
    ['gzip in two members', 'gzip', body => Buffer.concat(half(body).map(part => zlib.gzipSync(part)))],
    ['GZIP in capitals', 'GZIP', zlib.gzipSync],
    ['x-gzip', 'x-gzip', zlib.gzipSync],
    ['deflate in zlib format', 'deflate', zlib.deflateSync],
    ['raw deflate', 'deflate', zlib.deflateRawSync],
    ['raw deflate without compression', 'deflate', body => zlib.deflateRawSync(body, { level: 0 })],
    ['gzip with padding', 'gzip', body => Buffer.concat([zlib.gzipSync(body), Buffer.alloc(512)])],
    ['br', 'br', zlib.brotliCompressSync],
    ['identity', 'identity', Buffer.from],
  ];

  test.each(COMPRESSORS)(
    '%s is decompressed, and is a repeat of the same body',
    async (name, coding, compress) => {
      const project = `compressed-${name.replaceAll(/\W+/g, '-')}`;
      const body = `[${line(project, 'a')}]`;
      const headers = { 'Content-Encoding': coding };
      expect(await send(compress(body), { headers })).toMatchObject({ status: 200, accepted: 1 });
      expect(await send(body)).toMatchObject({ status: 200, accepted: 1 });
      await expect.poll(() => idsOf(app, project)).toEqual(['a']);
    },
  );

  test('zstd is decompressed if Node supports it, and gets 415 otherwise', async () => {
    const compress = (zlib as { zstdCompressSync?: (body: string) => Buffer }).zstdCompressSync;
    const frames = ['a', 'b'].map(
      id => compress?.(`${line('zstd', id)}\n`) ?? Buffer.from('28b52ffd0401', 'hex'),
    );
    const headers = { 'Content-Encoding': 'zstd', 'Content-Type': 'application/x-ndjson' };
    const { status, accepted, error } = await send(Buffer.concat(frames), { headers });
    if (compress !== undefined) expect([status, accepted]).toEqual([200, 2]);
    else {
      expect([status, error.code]).toEqual([415, 'unsupported_media_type']);
      expect(error.message).toMatch(/supported: gzip, deflate, br$/);
    }
  });

  test('other codings get 415', async () => {
    for (const coding of ['compress', 'gzip, gzip', 'gzip;q=1', 'snappy', 'constructor']) {
      const { status, error } = await send(zlib.gzipSync(line('p')), {
        headers: { 'Content-Encoding': coding },
      });
      expect([status, error.code]).toEqual([415, 'unsupported_media_type']);
    }
  });

  const text = line('p').repeat(50);
  const gzip = zlib.gzipSync(text);
  const BROKEN: [name: string, coding: string, ...parts: Uint8Array[]][] = [
    ['plain text as gzip', 'gzip', Buffer.from(text)],
    ['an empty body as gzip', 'gzip'],
    ['truncated gzip', 'gzip', gzip.subarray(0, -9)],
    ['gzip with a wrong checksum', 'gzip', gzip.subarray(0, -8), Buffer.alloc(8)],
    ['gzip with a zero byte between its members', 'gzip', gzip, Buffer.alloc(1), gzip],
    ['gzip as deflate', 'deflate', gzip],
    ['truncated deflate', 'deflate', zlib.deflateSync(text).subarray(0, -9)],
    ['deflate in two streams', 'deflate', zlib.deflateSync(line('p')), zlib.deflateSync(line('p'))],
    ['plain text as br', 'br', Buffer.from(text)],
    ['truncated br', 'br', zlib.brotliCompressSync(text).subarray(0, -5)],
    ['br and what follows its end', 'br', zlib.brotliCompressSync(line('p')), Buffer.from(line('p'))],
  ];
  test.each(BROKEN)('%s gets 400', async (_, coding, ...parts) => {
    const { status, error } = await send(Buffer.concat(parts), { headers: { 'Content-Encoding': coding } });
    expect([status, error.code]).toEqual([400, 'invalid_body']);
  });
});

describe('POST /api/logs: source name', () => {
  test('every name is accepted as source_name, as source and in X-Source', async () => {
    const project = 'source-names';
    for (const name of ACCEPTED_NAMES) {
      await send(line(project, `by source_name ${name}`), { query: `?source_name=${name}` });
      await send(line(project, `by source ${name}`), { query: `?source=${name}` });
      await send(line(project, `by header ${name}`), { query: '', headers: { 'X-Source': name } });
    }
    for (const kind of LOG_KINDS) {
      const names = ACCEPTED_NAMES.filter(name => kindOf(name) === kind);
      await expect.poll(() => idsOf(app, project, kind)).toHaveLength(3 * names.length);
    }
    const { error } = await send(line('p'), { query: '' });
    for (const name of ACCEPTED_NAMES) expect(error.message).toContain(name);
    const headers = { 'X-Source': 'cloudflare.logs.prod' }; // several names of the same kind
    for (const query of [
      '?source_name=edge&source=edge_logs',
      '?source_name=edge&source_name=edge',
      '?source_name=&source=edge',
    ])
      expect((await send(line('agree'), { query, headers })).status).toBe(200);
  });

  test.each([
    ['no name', '', {}, 'missing_parameter'],
    ['an empty name', '?source_name=', {}, 'missing_parameter'],
    ['an unknown name', '?source_name=nginx', {}, 'invalid_parameter'],
    ['a name in other letter case', '?source_name=Edge', {}, 'invalid_parameter'],
    ['a name of an object member', '?source_name=constructor', {}, 'invalid_parameter'],
    ['two kinds', '?source_name=edge&source=auth', {}, 'invalid_parameter'],
    ['two kinds, one in the header', '?source_name=edge', { 'X-Source': 'auth' }, 'invalid_parameter'],
    ['a known and an unknown name', '?source_name=edge&source=nginx', {}, 'invalid_parameter'],
  ])('%s gets 400', async (_, query, headers, code) => {
    const { status, error } = await send(line('p'), { query, headers });
    expect([status, error.code, error.param]).toEqual([400, code, 'source_name']);
    if (query === '?source_name=Edge') expect(error.message).toContain('did you mean edge?');
  });
});

describe('POST /api/logs: tokens', () => {
  const status = async (token: string, query?: string) =>
    (await send(line('tokens'), { token, ...(query && { query }) })).status;

  test('a token with the scope of one kind can send that kind under all of its names, and gets 403 for any other name', async () => {
    for (const name of ['edge', 'edge_logs', 'cloudflare.logs.prod'])
      expect(await status(tokens.secrets.edge, `?source=${name}`)).toBe(200);
    for (const query of ['?source_name=auth', '?source_name=nginx', '?x=1', '?source=edge&source_name=auth'])
      expect(await status(tokens.secrets.edge, query)).toBe(403);
  });

  // A request with several errors gets the response for the first of: path, method, starting, token, rate, scope, source, body.
  test('path and method are checked first, then token, scope, source, Content-Type and Content-Encoding', async () => {
    const ask = async (token: string, query: string, headers: Record<string, string>) =>
      (await send('{broken', { token, query, headers })).status;
    const { reader, all } = tokens.secrets;
    const xml = { 'Content-Type': 'text/xml' };
    for (const token of ['', 'dnd_wrong']) expect(await ask(token, '?source_name=nginx', xml)).toBe(401);
    expect(await ask(reader, '?source_name=nginx', xml)).toBe(403);
    expect(await ask(all, '?source_name=nginx', xml)).toBe(400);
    expect(await ask(all, '?source_name=edge', xml)).toBe(415);
    expect(await ask(all, '?source_name=edge', { 'Content-Encoding': 'lz4' })).toBe(415);
    for (const kind of LOG_KINDS) expect(await status(all, `?source_name=${kind}`)).toBe(200);
    const sendTo = (path: string, method: string, url = app.internalUrl) =>
      fetchResponse(`${url}${path}`, { method, headers: { 'X-API-KEY': API_KEY } });
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']) {
      const { status: found, headers } = await sendTo('/api/logs?source_name=edge', method);
      expect([found, headers.get('allow')]).toEqual([405, 'POST']);
    }
    for (const path of ['/api/endpoints', '/api/endpoints/query/logs.all?project=a', '/api/logs/'])
      expect((await sendTo(path, 'GET')).status).toBe(404);
    expect((await sendTo('/api/logs?source_name=edge', 'POST', app.url)).status).toBe(404);
    expect((await sendTo('/metrics', 'GET', app.url)).status).toBe(404);
  });

  test('a token over its rate gets 429 with Retry-After', async () => {
    expect(await status(tokens.secrets.slow)).toBe(200);
    const { status: second, headers } = await send(line('tokens'), { token: tokens.secrets.slow });
    expect(second).toBe(429);
    expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
  });

  test('a token that is pinned to projects stores their records, and records of other projects are rejected', async () => {
    const records = ['mine', 'other', 'ours', 'MINE', 'mine '].map(project => ({
      project,
      message: 'm',
      id: `pin-${project}`,
    }));
    const hidden = { project: 'other', message: 'm', id: 'hidden', metadata: { project: 'mine' } };
    const extracted = { message: 'm', id: 'extracted', metadata: { project_ref: 'ours' } };
    const response = await send([...records, hidden, extracted], { token: tokens.secrets.pinned });
    expect(response).toMatchObject({ status: 200, accepted: 3, rejected: 4 });
    expect(response.errors.map(({ index, code }) => [index, code])).toEqual(
      [1, 3, 4, 5].map(index => [index, 'project_not_allowed']),
    );
    await expect.poll(() => idsOf(app, 'ours')).toEqual(['extracted', 'pin-ours']);
    expect(await idsOf(app, 'other')).toEqual([]);
  });
});

// Repeated, because the machine may be busy. A delay of the program would be the same each time.
test('acknowledged records are visible to queries within 2 seconds', { retry: 3 }, async () => {
  const realTimeApp = await startTestApp({}, systemTimer); // with the batch delay of the real applier
  try {
    const records = Array.from({ length: 20 }, (_, i) => line('soon', `id-${i}`));
    await Promise.all(records.map(record => sendLogs(realTimeApp.internalUrl, record)));
    const start = performance.now();
    await expect.poll(() => idsOf(realTimeApp, 'soon')).toHaveLength(20);
    expect(performance.now() - start).toBeLessThan(2_000);
  } finally {
    await realTimeApp.close();
  }
});
