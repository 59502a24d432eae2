import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type RecordCounts, readBack } from '../../src/backup/read-back.ts';
import { unpack } from '../../src/backup/unpack.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { readTar } from '../../src/system/tar.ts';
import { fetchResponse, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { listOpenFiles } from '../support/open-files.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

const REQUESTS = [
  ['logs.all', {}],
  ['logs.all', { project_tier: 'ENTERPRISE' }],
  ['logs.all', { iso_timestamp_start: '2026-11-14T12:20:00Z', iso_timestamp_end: '2026-11-14T12:25:30Z' }],
  ...['minutely', 'hourly', 'daily'].map(interval => ['usage.api-counts', { interval }] as const),
  ...['15min', '1hr', '1day', '7day'].map(
    interval => ['functions.invocation-stats', { interval, function_id: 'hello' }] as const,
  ),
] as const;

describe('a backup of a running server', () => {
  let tokens: TestTokens<'admin' | 'other' | 'pinned'>;
  let directory: string;
  const apps: TestApp[] = [];
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'dendro-backup-'));
    tokens = await createTokens({
      admin: { scopes: ['admin', 'ingest', 'query'] },
      other: { scopes: ['query', 'ingest', 'metrics'] },
      pinned: { scopes: ['admin'], projects: ['alpha'] },
    });
  });
  afterEach(async () => {
    for (const app of apps.splice(0)) await app.close();
    tokens.remove();
    rmSync(directory, { recursive: true, force: true });
  });

  const start = async (dataDirectory?: string) => {
    const store = dataDirectory === undefined ? {} : { store: testStoreOptions(dataDirectory) };
    const app = await startTestApp({ tokensFile: tokens.file, minDownloadRate: 0, ...store });
    apps.push(app);
    return app;
  };
  const headers = () => ({ 'X-API-KEY': tokens.secrets.admin });
  const sendRecords = async (app: TestApp, kind: string, records: readonly object[]) => {
    const { status } = await fetchResponse(`${app.internalUrl}/api/logs?source_name=${kind}`, {
      method: 'POST',
      headers: headers(),
      body: JSON.stringify(records),
    });
    expect(status).toBe(200);
  };
  const post = async (app: TestApp, kind: 'edge' | 'function_edge', project: string, numbers: number[]) => {
    const records = numbers.map(number => ({
      id: `${project}-${number}`,
      project,
      timestamp: Date.parse('2026-11-14T12:20:00Z') + number * 100,
      event_message: `message ${number}`,
      metadata: {
        project_ref: project,
        ...(kind === 'edge'
          ? { request: { url: `https://${project}.example/auth/v1/${number}`, path: `/auth/v1/${number}` } }
          : { function_id: 'hello', execution_time_ms: number, response: { status_code: 200 } }),
      },
    }));
    await sendRecords(app, kind, records);
  };
  const kindOf = (number: number) => (number % 2 === 0 ? 'edge' : 'function_edge');
  const numbersOf = (kind: string, end: number) =>
    Array.from({ length: end }, (_, number) => number).filter(number => kindOf(number) === kind);
  const postAll = async (app: TestApp, project: string, end: number) => {
    for (const kind of ['edge', 'function_edge'] as const)
      await post(app, kind, project, numbersOf(kind, end));
  };
  const answers = async (app: TestApp, project: string) => {
    const texts: string[] = [];
    for (const [name, parameters] of REQUESTS) {
      const { status, text } = await app.query(name, { project, ...parameters });
      expect(status).toBe(200);
      texts.push(text);
    }
    return texts;
  };
  const untilVisible = async (app: TestApp, count: number) => {
    const sql = 'select (select count(*) from edge_logs) + (select count(*) from function_edge_logs)';
    const query = { sql, maxRows: 1, columns: [{ name: 'n', type: 'integer' as const }] };
    while (Number((await app.store.query(query, {})).rows[0]?.[0]) < count);
  };
  const backUp = async (app: TestApp): Promise<RecordCounts> => {
    const response = await fetch(`${app.internalUrl}/api/admin/backup`, { headers: headers() });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-type')).toBe('application/x-tar');
    await unpack(readTar(response.body as AsyncIterable<Uint8Array>), directory);
    return readBack(directory, 'duckdb');
  };

  test('has exactly the records of one moment while intake and flushes continue: every answer is the same', async () => {
    const app = await start();
    await postAll(app, 'still', 40);
    await app.store.flush(LOG_KINDS);
    let isDone = false;
    let sent = 0;
    const sending = (async () => {
      for (; !isDone; sent++) {
        await post(app, kindOf(sent), 'moving', [sent]);
        if (sent % 5 === 0) await app.store.flush(LOG_KINDS);
      }
    })();
    while (sent < 8) await new Promise(resolve => setTimeout(resolve, 5));
    const sentBefore = sent;
    const counts = await backUp(app).finally(() => {
      isDone = true;
    });
    await sending;
    const countOf = (kind: 'edge' | 'function_edge') => {
      const { stored, spooled } = counts[kind] ?? { stored: 0, spooled: 0 };
      return stored + spooled - 20;
    };
    const moved = countOf('edge') + countOf('function_edge');
    expect(moved).toBeGreaterThanOrEqual(sentBefore);
    // The kinds alternate, so a copy of one moment has as many of each, or one more of the first.
    expect(countOf('edge') - countOf('function_edge')).toBe(moved % 2);

    const copy = await start(directory);
    const reference = await start();
    await postAll(reference, 'moving', moved);
    await untilVisible(reference, moved);
    await untilVisible(copy, moved + 40);
    expect(await answers(copy, 'moving')).toEqual(await answers(reference, 'moving'));
    expect(await answers(copy, 'still')).toEqual(await answers(app, 'still'));
    expect((await answers(copy, 'still')).join()).toContain('message 38');
    // The copy is a data directory of its own: it accepts records, next to the original.
    await post(copy, 'edge', 'still', [100]);
    await untilVisible(copy, moved + 41);
  }, 30_000);

  test('needs the scope admin, which a pinned token does not have', async () => {
    const app = await start();
    const statusesOf = async (secret: string) => {
      const init = { headers: { 'X-API-KEY': secret } };
      const statuses: number[] = [];
      for (const request of [init, { ...init, method: 'POST', body: '{"have":[]}' }]) {
        const response = await fetch(`${app.internalUrl}/api/admin/backup`, request);
        await response.arrayBuffer();
        statuses.push(response.status);
      }
      return statuses;
    };
    expect(await statusesOf('')).toEqual([401, 401]);
    expect(await statusesOf(tokens.secrets.other)).toEqual([403, 403]);
    expect(await statusesOf(tokens.secrets.pinned)).toEqual([403, 403]);
    expect(await statusesOf(tokens.secrets.admin)).toEqual([200, 200]);
    expect((await app.get('/api/admin/backup', { headers: headers() })).status).toBe(404);
  });

  test('that is read slowly delays no erasure and no compaction, and has the records of its moment', async () => {
    const app = await start();
    // Larger than the socket buffers of both sides, and cannot be compressed.
    for (let part = 0; part < 4; part++) {
      const messages = Array.from({ length: 12 }, () => randomBytes(300_000).toString('base64'));
      const records = messages.map(message => ({ project: 'large', message }));
      await sendRecords(app, 'edge', [...records, { project: 'still', message: 'small' }]);
      await untilVisible(app, (part + 1) * 13);
      await app.store.flush(LOG_KINDS);
    }
    const response = await fetch(`${app.internalUrl}/api/admin/backup`, { headers: headers() });
    const erase = async (init: RequestInit) => {
      const url = `${app.internalUrl}/api/admin/erase`;
      return JSON.parse((await fetchResponse(url, { ...init, headers: headers() })).text).result;
    };
    await erase({ method: 'POST', body: JSON.stringify({ project: 'large' }) });
    await expect.poll(() => erase({})).toMatchObject({ state: 'done', records: 48 });
    while (await app.store.maintain('compact'));
    const left = readdirSync(join(app.dataDirectory, 'parts'));

    await unpack(readTar(response.body as AsyncIterable<Uint8Array>), directory);
    const copied = readdirSync(join(directory, 'parts'));
    expect(copied.filter(name => left.includes(name))).toEqual([]);
    expect(await readBack(directory, 'duckdb')).toEqual({ edge: { stored: 52, spooled: 0 } });
    await untilVisible(await start(directory), 52);
  });

  test.each([
    ['no JSON', 'have', 400, /not a JSON object such as \{"have":\[\]\}/],
    ['a list', '[]', 400, /not a JSON object/],
    ['no list of checksums', '{}', 400, /have must be a list of SHA-256 checksums/],
    ['a checksum that is too short', '{"have":["abc"]}', 400, /have must be a list/],
    ['a number as checksum', '{"have":[7]}', 400, /have must be a list/],
    ['an unknown key', '{"have":[],"since":1}', 400, /unknown key; allowed: have/],
    ['too many checksums', `{"have":["${'a'.repeat(1024 * 1024)}"]}`, 413, /larger than 1024 KiB/],
  ])('is refused if the body of the request has %s', async (_, body, status, message) => {
    const app = await start();
    const init = { method: 'POST', headers: headers(), body };
    const response = await fetch(`${app.internalUrl}/api/admin/backup`, init);
    expect(response.status).toBe(status);
    expect(JSON.parse(await response.text()).error.message).toMatch(message);
  });

  test('that the client does not read to the end is released', async () => {
    const app = await start();
    // Larger than the socket buffers of both sides.
    mkdirSync(join(app.dataDirectory, 'clickhouse'));
    writeFileSync(join(app.dataDirectory, 'clickhouse/large.block'), Buffer.alloc(64 * 1024 * 1024));
    const disconnected = request(`${app.internalUrl}/api/admin/backup`, { headers: headers() }).end();
    const [response] = await once(disconnected, 'response');
    expect(response.statusCode).toBe(200);
    disconnected.destroy();
    await expect
      .poll(() => listOpenFiles(app.dataDirectory))
      .not.toContain(join(app.dataDirectory, 'format.json'));
    expect(app.events.filter(({ type }) => type === 'request_failed')).toEqual([]);
  });

  test('that fails while it is sent is incomplete, and its event has the status 200 that the client got', async () => {
    const app = await start();
    // A file that an earlier run with ClickHouse may have left, larger than the socket buffers of both sides.
    const outbox = join(app.dataDirectory, 'clickhouse');
    const file = join(outbox, 'large.block');
    mkdirSync(outbox);
    writeFileSync(file, '');
    truncateSync(file, 64 * 1024 * 1024);
    const response = await fetch(`${app.internalUrl}/api/admin/backup`, { headers: headers() });
    expect(response.status).toBe(200);
    truncateSync(file);
    await expect(response.arrayBuffer()).rejects.toThrow();
    const failures = () => app.events.filter(({ type }) => type === 'request_failed');
    await expect.poll(failures).toMatchObject([
      {
        route: '/api/admin/backup',
        status: 200,
        error: { message: expect.stringContaining('the file ends after') },
      },
    ]);
  });

  test.runIf(process.platform === 'linux')(
    'that fails because the tokens file cannot be opened leaves no file open',
    async () => {
      const app = await start();
      rmSync(tokens.file);
      symlinkSync(tokens.file, tokens.file); // a loop of links
      const response = await fetch(`${app.internalUrl}/api/admin/backup`, { headers: headers() });
      expect(response.status).toBe(500);
      await response.arrayBuffer();
      // The server itself opens this file only at its start.
      expect(listOpenFiles(app.dataDirectory)).not.toContain(join(app.dataDirectory, 'format.json'));
    },
  );
});

describe('a backup of a server with ClickHouse', () => {
  test('has the spool, the outbox and the tokens', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'dendro-backup-'));
    const tokens = await createTokens({ admin: { scopes: ['admin', 'ingest'] } });
    const dataDirectory = join(directory, 'data');
    const { parseClickHouseUrl } = await import('../../src/store/clickhouse-url.ts');
    const clickhouse = parseClickHouseUrl('clickhouse://127.0.0.1:1/logs');
    const app = await startTestApp({
      tokensFile: tokens.file,
      storeName: 'clickhouse',
      store: { ...testStoreOptions(dataDirectory), clickhouse },
    });
    try {
      const headers = { 'X-API-KEY': tokens.secrets.admin };
      const post = (message: string) =>
        fetchResponse(`${app.internalUrl}/api/logs?source_name=edge`, {
          method: 'POST',
          headers,
          body: JSON.stringify([{ project: 'a', message }]),
        });
      expect((await post('one')).status).toBe(200);
      while (app.store.durableUpTo('edge') === 0) await new Promise(resolve => setTimeout(resolve, 5));
      expect((await post('two')).status).toBe(200);
      const response = await fetch(`${app.internalUrl}/api/admin/backup`, { headers });
      const copy = join(directory, 'copy');
      const paths = await unpack(readTar(response.body as AsyncIterable<Uint8Array>), copy);
      expect([...paths].sort()).toEqual([
        'backup.json',
        'clickhouse/edge.block',
        'clickhouse/progress.json',
        'format.json',
        'spool/000000000001.spool',
        'spool/next-numbers.json',
        'tokens.json',
      ]);
      expect(await readBack(copy, 'clickhouse')).toEqual({ edge: { stored: 1, spooled: 1 } });
      // As a backup without --store takes it.
      expect(await readBack(copy, 'duckdb')).toEqual({ edge: { stored: 0, spooled: 2 } });
      const block = join(copy, 'clickhouse/edge.block');
      truncateSync(block, statSync(block).size - 5);
      await expect(readBack(copy, 'duckdb')).rejects.toThrow();
    } finally {
      await app.close();
      tokens.remove();
      rmSync(directory, { recursive: true, force: true });
    }
  });
});
