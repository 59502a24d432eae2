// Opens data directories that version 0.1.0 wrote until it was killed (see README.md). A later version must read every file of
// them. The names of tables and files in the first test are those of version 0.1.0 and never change.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import { parseClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { openClickHouseOutbox } from '../../src/store/open-store.ts';
import { startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { sendLogs } from '../support/logs.ts';
import { savedQuery } from '../support/store.ts';

interface SentRequest {
  readonly kind: LogKind;
  readonly key?: string;
  readonly body: string;
  readonly answer: object;
}

interface Expected {
  readonly embedded: {
    readonly tokens: { readonly platform: string; readonly alpha: string };
    readonly kinds: Readonly<Record<LogKind, { readonly count: number; readonly digest: string }>>;
    readonly requests: Readonly<Record<'removedSegment' | 'spool' | 'withoutKey', SentRequest>>;
  };
  readonly clickhouse: { readonly token: string };
}

const EXPECTED: Expected = JSON.parse(readFileSync(join(import.meta.dirname, 'expected.json'), 'utf8'));
const QUERY = '/api/endpoints/query';
/** Nothing listens there. */
const UNREACHABLE = 'clickhouse://dendro:synthetic@127.0.0.1:1/dendro';

let directory: string;
let app: TestApp | undefined;

function unpack(name: 'embedded' | 'clickhouse'): void {
  directory = mkdtempSync(join(tmpdir(), 'dendro-upgrade-'));
  execFileSync('tar', ['-xzf', join(import.meta.dirname, `${name}-0.1.0.tar.gz`), '-C', directory]);
}

/** Starts the service on the unpacked directory. Its clock is 4 min 57 s ahead of that of version 0.1.0. */
async function start(clickhouseUrl?: string): Promise<TestApp> {
  await app?.close();
  const store = testStoreOptions(directory);
  const overrides = { tokensFile: join(directory, 'tokens.json'), environmentKeys: [] };
  app = await startTestApp(
    clickhouseUrl === undefined
      ? { ...overrides, store }
      : {
          ...overrides,
          store: { ...store, clickhouse: parseClickHouseUrl(clickhouseUrl) },
          storeName: 'clickhouse',
        },
  );
  return app;
}

async function cleanUp(): Promise<void> {
  await app?.close();
  app = undefined;
  rmSync(directory, { recursive: true, force: true });
}

describe('a data directory of the embedded store, written by version 0.1.0', () => {
  const { tokens, kinds, requests } = EXPECTED.embedded;

  const query = (service: TestApp, name: string, parameters: Record<string, string>, token: string) =>
    service.get(`${QUERY}/${name}?${new URLSearchParams(parameters)}`, { headers: { 'X-API-KEY': token } });
  const resend = (service: TestApp, { kind, key, body }: SentRequest) =>
    sendLogs(service.internalUrl, body, {
      query: `?source_name=${kind}`,
      token: tokens.platform,
      headers: key === undefined ? {} : { 'Idempotency-Key': key },
    });
  /** Resolves when the record is visible. */
  const sendNew = async (service: TestApp, kind: LogKind, id: string) => {
    const records = [{ id, project: 'alpha', message: 'new' }];
    const sent = await sendLogs(service.internalUrl, records, {
      query: `?source_name=${kind}`,
      token: tokens.platform,
    });
    expect(sent.accepted).toBe(1);
    await expect.poll(() => count(service, `${kind}_logs where id = '${id}'`)).toBe(1);
  };

  beforeEach(() => unpack('embedded'));
  afterEach(cleanUp);

  test('its tokens are valid, and the token pinned to alpha reads and writes alpha only', async () => {
    const running = await start();
    const read = (project: string) => query(running, 'logs.all', { project }, tokens.alpha);
    expect((await read('alpha')).rows).toHaveLength(31);
    expect((await read('beta')).status).toBe(403);
    expect((await query(running, 'logs.all', { project: 'beta' }, tokens.platform)).rows).toHaveLength(16);
    const sent = await sendLogs(
      running.internalUrl,
      ['alpha', 'beta'].map(project => ({ id: `new-${project}`, project, message: 'new' })),
      { token: tokens.alpha },
    );
    expect([sent.accepted, sent.rejected]).toEqual([1, 1]);
    const unknown = await query(running, 'logs.all', { project: 'alpha' }, `${tokens.alpha}x`);
    expect(unknown.status).toBe(401);
  });

  test('the incomplete block at the end of the spool, which was never acknowledged, is not kept as a .damaged file', async () => {
    await expect((await start()).close()).resolves.toBeUndefined();
    expect(readdirSync(join(directory, 'spool')).filter(name => name.endsWith('.damaged'))).toEqual([]);
  });

  test('the time of last use of a token and the rejected record in the quarantine file are kept', async () => {
    const quarantine = readFileSync(join(directory, 'quarantine.ndjson'), 'utf8');
    expect(quarantine).toContain('edge-rejected-0000');
    const running = await start();
    await query(running, 'logs.all', { project: 'alpha' }, tokens.alpha);
    await running.close();
    const lastUsed = JSON.parse(readFileSync(join(directory, 'tokens-last-used.json'), 'utf8'));
    expect(Object.values(lastUsed).sort()).toEqual(['2026-11-14T12:30:00Z', '2026-11-14T12:34:56.789012Z']);
    expect(readFileSync(join(directory, 'quarantine.ndjson'), 'utf8')).toBe(quarantine);
  });

  test('a repeated request of the old run gets its first response and stores nothing', async () => {
    const running = await start();
    // The spool segment of the first was removed, the second has a rejected record, the third has no Idempotency-Key.
    for (const request of [requests.removedSegment, requests.spool, requests.withoutKey]) {
      const repeated = await resend(running, request);
      expect(repeated.status).toBe(200);
      expect(JSON.parse(repeated.text)).toEqual(request.answer);
    }
    // Records are applied in order: if repeated ones were stored, they would be visible before these.
    await Promise.all([sendNew(running, 'edge', 'next'), sendNew(running, 'auth', 'next')]);
    const { edge, auth } = kinds;
    expect(await countKinds(running)).toEqual({
      ...countsOf(kinds),
      edge: edge.count + 1,
      auth: auth.count + 1,
    });
  });

  test('an Idempotency-Key of the old run with another body is a conflict, and is free after 10 minutes', async () => {
    const running = await start();
    const other = { ...requests.spool, body: '[{"id":"new","project":"alpha","message":"new"}]' };
    expect((await resend(running, other)).error.code).toBe('idempotency_conflict');
    running.setNow('2026-11-14T12:40:00Z');
    expect((await resend(running, other)).accepted).toBe(1);
  });

  test('a record acknowledged with --store clickhouse is returned after a change back to the embedded store', async () => {
    // Its sequence number follows next-numbers.json. A lower number would count as flushed, and the record be skipped.
    const unreachable = await start(UNREACHABLE);
    const sent = await sendLogs(unreachable.internalUrl, [{ id: 'new', project: 'alpha', message: 'new' }], {
      query: '?source_name=function',
      token: tokens.platform,
    });
    expect(sent.accepted).toBe(1);
    expect(await countKinds(await start())).toEqual({
      ...countsOf(kinds),
      function: kinds.function.count + 1,
    });
  });
});

describe('a data directory of a ClickHouse store, written by version 0.1.0 while ClickHouse was unreachable', () => {
  let server: Awaited<ReturnType<typeof startInsertServer>>;

  beforeEach(async () => {
    unpack('clickhouse');
    server = await startInsertServer();
  });
  afterEach(async () => {
    await cleanUp();
    server.close();
  });

  test('its progress and the blocks that were not acknowledged are read', async () => {
    const progress = await openClickHouseOutbox(directory);
    const read = LOG_KINDS.map(kind => {
      const { first, count } = progress.pending(kind) ?? {};
      return [kind, [progress.acknowledgedUpTo(kind), progress.durableUpTo(kind), first, count]];
    });
    expect(Object.fromEntries(read)).toEqual({
      edge: [5, 12, 5, 7],
      auth: [3, 5, 3, 2],
      function_edge: [0, 6, 0, 6],
      postgres: [0, 2, 0, 2],
      ...Object.fromEntries(
        ['function', 'realtime', 'storage', 'rest', 'pooler'].map(kind => [
          kind,
          [0, 0, undefined, undefined],
        ]),
      ),
    });
  });

  test('its blocks are sent first, unchanged and with their tokens, then the rest of the spool, once', async () => {
    const blocks = new Map(
      ['edge', 'auth', 'function_edge', 'postgres'].map(kind => [kind, readBlock(kind)]),
    );
    await start(server.url);
    await expect.poll(() => server.inserts.length).toBe(5);
    for (const [kind, { token, compressed }] of blocks) {
      const first = server.inserts.find(insert => insert.kind === kind);
      expect(first?.token).toBe(token);
      expect(first?.compressed.equals(compressed)).toBe(true);
    }
    expect(server.ids()).toEqual([
      ...idsOf('auth', 'frozen', 2),
      ...idsOf('edge', 'frozen', 7),
      ...idsOf('edge', 'spooled', 4),
      ...idsOf('function_edge', 'frozen', 6),
      ...idsOf('postgres', 'frozen', 2),
    ]);
    expect(server.inserts.filter(({ kind }) => kind === 'edge').map(({ rows }) => rows.length)).toEqual([
      7, 4,
    ]);
    const [, , withControlCharacters] = server.inserts.find(({ kind }) => kind === 'edge')?.rows ?? [];
    expect(withControlCharacters?.['event_message']).toBe(
      'edge record 2, frozen\twith a tab\nand a second line',
    );
    await start(server.url);
    expect(server.inserts).toHaveLength(5);
  });

  test('a record acknowledged while ClickHouse is still unreachable is sent after the old ones', async () => {
    const unreachable = await start(UNREACHABLE);
    const sent = await sendLogs(
      unreachable.internalUrl,
      [{ id: 'new', project: 'alpha', message: 'new', metadata: {} }],
      { token: EXPECTED.clickhouse.token },
    );
    expect(sent.accepted).toBe(1);
    await start(server.url);
    await expect.poll(() => server.ids('edge')).toHaveLength(12);
    expect(server.ids('edge')).toEqual([
      ...idsOf('edge', 'frozen', 7),
      ...idsOf('edge', 'spooled', 4),
      'new',
    ]);
    expect(existsSync(join(directory, 'clickhouse', 'edge.block'))).toBe(false);
  });

  function readBlock(kind: string): { token: string; compressed: Buffer } {
    const bytes = readFileSync(join(directory, 'clickhouse', `${kind}.block`));
    const headerEnd = bytes.indexOf('\n');
    return { ...JSON.parse(bytes.toString('utf8', 0, headerEnd)), compressed: bytes.subarray(headerEnd + 1) };
  }
});

interface Insert {
  readonly kind: string;
  readonly token: string;
  readonly compressed: Buffer;
  readonly rows: readonly Record<string, unknown>[];
}

/** Acknowledges inserts as ClickHouse does, and drops every other connection. */
async function startInsertServer() {
  const inserts: Insert[] = [];
  const server = createServer(async (request, response) => {
    const { pathname, searchParams } = new URL(request.url ?? '', 'http://localhost');
    if (pathname === '/ping') return response.end('Ok.\n');
    const kind = /^insert into (\w+)_logs /.exec(searchParams.get('query') ?? '')?.[1];
    const token = searchParams.get('insert_deduplication_token') ?? '';
    if (kind === undefined || token === '') return request.socket.destroy();
    const compressed = Buffer.concat(await request.toArray());
    const lines = gunzipSync(compressed).toString('utf8').split('\n');
    const rows = lines.filter(line => line !== '').map(line => JSON.parse(line));
    inserts.push({ kind, token, compressed, rows });
    return response.end();
  });
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `clickhouse://dendro:synthetic@127.0.0.1:${port}/dendro`,
    inserts,
    /** Sorted: blocks of different kinds are sent in no particular order. */
    ids: (kind?: string) =>
      inserts
        .filter(insert => kind === undefined || insert.kind === kind)
        .flatMap(({ rows }) => rows.map(({ id }) => String(id)))
        .sort(),
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}

function idsOf(kind: string, state: string, length: number): string[] {
  return Array.from({ length }, (_, n) => `${kind}-${state}-${String(n).padStart(4, '0')}`);
}

async function count(running: TestApp, from: string): Promise<number> {
  const { rows } = await running.store.query(savedQuery(`select count(*) from ${from}`, ['integer']), {});
  return Number(rows[0]?.[0]);
}

async function countKinds(running: TestApp): Promise<Record<string, number>> {
  const counts = LOG_KINDS.map(async kind => [kind, await count(running, `${kind}_logs`)]);
  return Object.fromEntries(await Promise.all(counts));
}

function countsOf(kinds: Expected['embedded']['kinds']): Record<string, number> {
  return Object.fromEntries(LOG_KINDS.map(kind => [kind, kinds[kind].count]));
}
