// dendro backup into the directory of an earlier backup, from a running server and from an idle data directory.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readBack } from '../../src/backup/read-back.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { fetchResponse, startTestApp, type TestApp, testStoreOptions } from '../support/app.ts';
import { createTempDirectory, DENDRO_COMMAND, onlyLine, runDendro } from '../support/process.ts';
import { createTokens, type TestTokens } from '../support/tokens.ts';

let directory: ReturnType<typeof createTempDirectory>;
const copy = (name = '') => join(directory.path, 'copy', name);
const data = (name = '') => join(directory.path, 'data', name);
const partsOf = (path: string) => readdirSync(join(path, 'parts')).sort();
const inodesOf = (path: string) =>
  Object.fromEntries(partsOf(path).map(name => [name, statSync(join(path, 'parts', name)).ino]));
const flipByte = (path: string) => {
  const content = readFileSync(path);
  content[5000] = (content[5000] ?? 0) ^ 1;
  writeFileSync(path, content);
};
beforeEach(() => {
  directory = createTempDirectory();
});
afterEach(() => directory.remove());

describe('a second backup of a running server into the same directory', () => {
  let tokens: TestTokens<'admin'>;
  let app: TestApp;
  let sent = 0;
  beforeEach(async () => {
    tokens = await createTokens({ admin: { scopes: ['admin', 'ingest', 'query'] } });
    app = await start();
    sent = 0;
    for (const project of ['a', 'b']) await storePart(project);
  });
  afterEach(async () => {
    await app.close();
    tokens.remove();
  });

  const start = (path = data()) =>
    startTestApp({ tokensFile: tokens.file, minDownloadRate: 0, store: testStoreOptions(path) });
  const countRecords = async ({ store }: TestApp) => {
    const columns = [{ name: 'n', type: 'integer' as const }];
    return Number(
      (await store.query({ sql: 'select count(*) from edge_logs', columns, maxRows: 1 }, {})).rows[0]?.[0],
    );
  };
  const send = async (project: string) => {
    const { status } = await fetchResponse(`${app.internalUrl}/api/logs?source_name=edge`, {
      method: 'POST',
      headers: { 'X-API-KEY': tokens.secrets.admin },
      body: JSON.stringify([{ project, message: `of ${project}` }]),
    });
    expect(status).toBe(200);
    sent++;
  };
  const storePart = async (project: string) => {
    await send(project);
    await expect.poll(() => countRecords(app)).toBe(sent);
    await app.store.flush(LOG_KINDS);
  };
  const backUp = (url = app.internalUrl) =>
    runDendro(['backup', copy(), '--url', url], { env: { DENDRO_TOKEN: tokens.secrets.admin } });

  test('copies new parts, keeps the others as they are, and drops those that are gone', async () => {
    expect(await backUp()).toMatchObject({ code: 0, stderr: '' });
    const before = inodesOf(copy());
    expect(Object.keys(before)).toEqual(['edge-000001.duckdb', 'edge-000002.duckdb']);
    await storePart('c');
    await app.store.eraseProject({ project: 'a' });
    await send('d');
    const { code, stdout, stderr } = await backUp();
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain(': 3 records (');
    const after = inodesOf(copy());
    expect(Object.keys(after)).toContain('edge-000003.duckdb');
    expect(Object.keys(after)).not.toContain('edge-000001.duckdb');
    expect(after['edge-000002.duckdb']).toBe(before['edge-000002.duckdb']);
    expect(readdirSync(directory.path).sort()).toEqual(['copy', 'data']);
    const restored = await start(copy());
    await expect.poll(() => countRecords(restored)).toBe(3);
    await restored.close();
  });

  test('reports a part that is damaged on the server, and keeps the earlier backup', async () => {
    await backUp();
    const before = inodesOf(copy());
    await storePart('c');
    flipByte(data('parts/edge-000003.duckdb'));
    const outcome = await backUp();
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain(
      'the copy cannot be read back, nothing was kept: parts/edge-000003.duckdb: its content differs from what was written',
    );
    expect(inodesOf(copy())).toEqual(before);
    expect(readdirSync(directory.path).sort()).toEqual(['copy', 'data']);
  });

  test('keeps a part that the server has set aside, and reports one that no backup has', async () => {
    await backUp();
    await storePart('c');
    await app.close();
    for (const name of ['edge-000001.duckdb', 'edge-000003.duckdb'])
      writeFileSync(data(`parts/${name}`), 'damaged');
    app = await start();
    const { code, stdout, stderr } = await backUp();
    expect(code).toBe(0);
    expect(stdout).toContain('1 records (1 stored, 0 in the spool)');
    expect(stderr).toBe(
      'dendro: the backup does not have parts/edge-000003.duckdb: the part is damaged or missing, and was set aside\n',
    );
    expect(partsOf(copy())).toEqual(['edge-000001.duckdb', 'edge-000002.duckdb']);
    const restored = await start(copy());
    expect(await countRecords(restored)).toBe(2);
    await restored.close();
  });

  test('that is killed leaves the earlier backup as it was, and the next one replaces it', async () => {
    await backUp();
    const before = inodesOf(copy());
    await storePart('c');
    mkdirSync(data('clickhouse'));
    writeFileSync(data('clickhouse/progress.json'), JSON.stringify({ spool: 'a', settled: {} }));
    writeFileSync(data('clickhouse/large.block'), Buffer.alloc(64 * 1024 * 1024));
    // Forwards the request, and never the end of the response.
    const proxy = createServer((incoming, outgoing) => {
      const { method, headers } = incoming;
      const forwarded = request(`${app.internalUrl}${incoming.url}`, { method, headers }, response => {
        outgoing.writeHead(response.statusCode ?? 0, response.headers);
        response.once('data', chunk => outgoing.write(chunk, () => proxy.emit('stalled')));
        response.on('end', () => {});
      });
      forwarded.on('error', () => {});
      incoming.pipe(forwarded);
      outgoing.on('close', () => forwarded.destroy());
    }).listen(0, '127.0.0.1');
    await once(proxy, 'listening');
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const [program, script] = DENDRO_COMMAND;
    const env = { ...process.env, DENDRO_TOKEN: tokens.secrets.admin };
    const child = spawn(program, [script, 'backup', copy(), '--url', url], { env });
    await once(proxy, 'stalled');
    await expect.poll(() => existsSync(`${copy()}.incomplete/manifest.json`)).toBe(true);
    child.kill('SIGKILL');
    await once(child, 'close');
    proxy.close();
    expect(inodesOf(copy())).toEqual(before);
    expect(await readBack(copy(), 'duckdb')).toEqual({ edge: { stored: 2, spooled: 0 } });
    expect(await backUp()).toMatchObject({ code: 0, stderr: '' });
    expect(partsOf(copy())).toEqual(partsOf(data()));
    expect(readdirSync(directory.path).sort()).toEqual(['copy', 'data']);
  });
});

describe('a second backup of an idle data directory into the same directory', () => {
  const ingest = async (message: string) => {
    const file = join(directory.path, 'edge.ndjson');
    writeFileSync(file, `${JSON.stringify({ project: 'a', message })}\n`);
    expect((await runDendro(['ingest', '--source', 'edge', file, '--data', data()])).code).toBe(0);
  };
  const backUp = () => runDendro(['backup', copy(), '--data', data()]);

  test('copies only new parts that the manifest names', async () => {
    await ingest('one');
    await backUp();
    const before = inodesOf(copy());
    await ingest('two');
    for (const name of ['edge-000009.duckdb', 'edge-000001.duckdb.damaged', 'edge-000010.duckdb.tmp', 'mine'])
      writeFileSync(data(`parts/${name}`), 'content');
    const { code, stdout } = await backUp();
    expect(code).toBe(0);
    expect(stdout).toContain('2 records (2 stored, 0 in the spool)');
    expect(readdirSync(copy()).sort()).toEqual([
      ...['backup.json', 'format.json', 'manifest.json', 'parts', 'spool'],
    ]);
    const after = inodesOf(copy());
    expect(after).toMatchObject(before);
    expect(Object.keys(after)).toHaveLength(2);
  });

  test('is refused if a server has used the earlier backup', async () => {
    await ingest('one');
    await backUp();
    await (await startTestApp({ store: testStoreOptions(copy()) })).close();
    const before = readdirSync(copy(), { recursive: true });
    const outcome = await backUp();
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain('which is not part of a backup; if a server has used the directory');
    expect(readdirSync(copy(), { recursive: true })).toEqual(before);
  });
});
