import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, truncateSync } from 'node:fs';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  type ServerHere,
  startServer,
  startServerHere,
} from '../support/process.ts';

type Directory = ReturnType<typeof createTempDirectory>;

async function postRecords(
  server: Pick<ServerHere, 'internalUrl'>,
  secret: string,
  count: number,
): Promise<void> {
  const records = Array.from({ length: count }, (_, i) => ({ project: 'acme', message: `record ${i}` }));
  const { status } = await fetchResponse(`${server.internalUrl}/api/logs?source_name=edge`, {
    method: 'POST',
    headers: { 'X-API-KEY': secret },
    body: JSON.stringify(records),
  });
  expect(status).toBe(200);
}

/** Waits until all records are visible. The contract says 2 s; a busy machine may need longer. */
async function untilRows(server: Pick<ServerHere, 'url'>, secret: string, count: number): Promise<unknown[]> {
  for (;;) {
    const url = `${server.url}/api/endpoints/query/logs.all?project=acme`;
    const { rows } = await fetchResponse(url, { headers: { 'X-API-KEY': secret } });
    if (rows.length === count) return rows;
    await sleep(50);
  }
}

/** Every file and directory, with its mode. */
function listModes(directory: string): Record<string, string> {
  const names = ['.', ...(readdirSync(directory, { recursive: true }) as string[])].sort();
  return Object.fromEntries(
    names.map(name => [name, (statSync(join(directory, name)).mode & 0o777).toString(8)]),
  );
}

describe('dendro backup of a running server', () => {
  let directory: Directory;
  let server: ServerHere;
  let admin: string;
  let proxy: Server | undefined;
  beforeAll(async () => {
    directory = createTempDirectory();
    const data = join(directory.path, 'data');
    const created = await runDendro([
      'token',
      'create',
      '--name',
      'backup',
      '--scope',
      'admin',
      '--data',
      data,
    ]);
    admin = created.stdout.trimEnd();
    server = await startServerHere(['--data', data], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    await postRecords(server, PROCESS_API_KEY, 20);
    await untilRows(server, PROCESS_API_KEY, 20);
  });
  afterEach(() => {
    proxy?.close();
    proxy = undefined;
  });
  afterAll(async () => {
    await server.stop();
    directory.remove();
  });

  const target = (name: string) => join(directory.path, name);
  const backUp = (name: string, url = server.internalUrl, token = admin) =>
    runDendro(['backup', target(name), '--url', url], { env: { DENDRO_TOKEN: token } });
  const leftovers = () => readdirSync(directory.path).filter(name => name.includes('incomplete'));

  test('writes a private copy that a second server serves, next to the original', async () => {
    mkdirSync(target('copy'));
    const { code, stdout, stderr } = await backUp('copy');
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toMatch(
      /^\S+\/copy: 20 records \(0 stored, 20 in the spool\) as of \S+Z; every file was verified\n$/,
    );
    expect(listModes(target('copy'))).toEqual({
      '.': '700',
      'backup.json': '600',
      'format.json': '600',
      'manifest.json': '600',
      spool: '700',
      'spool/000000000001.spool': '600',
      'spool/next-numbers.json': '600',
      'tokens.json': '600',
    });
    expect(leftovers()).toEqual([]);
    const second = await startServerHere(['--data', target('copy')], {
      env: { DENDRO_API_KEY: PROCESS_API_KEY },
    });
    try {
      const rows = await untilRows(second, PROCESS_API_KEY, 20);
      expect(rows).toEqual(await untilRows(server, PROCESS_API_KEY, 20));
      expect(second.stderr()).not.toMatch(/spool/i);
    } finally {
      await second.stop();
    }
  });

  test('with an environment key prints one line and leaves nothing', async () => {
    const outcome = await backUp('refused', server.internalUrl, PROCESS_API_KEY);
    expect({ code: outcome.code, stdout: outcome.stdout }).toEqual({ code: 1, stdout: '' });
    expect(onlyLine(outcome)).toContain('needs a token with the scope admin');
    expect(existsSync(target('refused'))).toBe(false);
    expect(leftovers()).toEqual([]);
  });

  test('whose connection breaks leaves nothing that looks like a backup', async () => {
    const { hostname, port } = new URL(server.internalUrl);
    let left = 3000;
    proxy = createServer(client => {
      const upstream = connect(Number(port), hostname);
      for (const socket of [client, upstream]) socket.on('error', () => {});
      client.pipe(upstream);
      upstream.on('data', (chunk: Buffer) => {
        client.write(chunk.subarray(0, left));
        left -= chunk.length;
        if (left <= 0) for (const socket of [client, upstream]) socket.destroy();
      });
    });
    await new Promise<void>(resolve => proxy?.listen(0, '127.0.0.1', resolve));
    const address = proxy.address() as { port: number };
    const outcome = await backUp('broken', `http://127.0.0.1:${address.port}`);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain('the download is not complete, nothing was kept');
    expect(existsSync(target('broken'))).toBe(false);
    expect(leftovers()).toEqual([]);
  });
});

describe('dendro backup of an idle data directory', () => {
  let directory: Directory;
  beforeEach(() => {
    directory = createTempDirectory();
  });
  afterEach(() => directory.remove());

  test('copies it, also after the server was killed; a directory in use is refused', async () => {
    const [data, copy] = [join(directory.path, 'data'), join(directory.path, 'copies/copy')];
    const server = await startServer(['--data', data], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    await postRecords(server, PROCESS_API_KEY, 5);
    const refused = await runDendro(['backup', copy, '--data', data]);
    expect(refused.code).toBe(1);
    expect(onlyLine(refused)).toContain(`is in use by another process (PID ${server.pid})`);
    server.signal('SIGKILL');
    await server.ended;
    const { code, stdout, stderr } = await runDendro(['backup', copy, '--data', data]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    expect(stdout).toContain('5 records (0 stored, 5 in the spool)');
    expect(JSON.parse(readFileSync(join(copy, 'backup.json'), 'utf8'))).toMatchObject({
      store: 'duckdb',
      records: { edge: { stored: 0, spooled: 5 } },
    });
    const again = await startServerHere(['--data', copy], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    await untilRows(again, PROCESS_API_KEY, 5);
    await again.stop();
  });

  test('is refused if an earlier release wrote the store, which has no parts yet', async () => {
    const [data, copy] = [join(directory.path, 'data'), join(directory.path, 'copy')];
    mkdirSync(data);
    execFileSync('tar', ['-xzf', join(import.meta.dirname, '../upgrade/embedded-0.1.0.tar.gz'), '-C', data]);
    const outcome = await runDendro(['backup', copy, '--data', data]);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain('has the store of an earlier release');
    expect(readdirSync(directory.path)).toEqual(['data']);
    expect(existsSync(join(data, 'dendro.duckdb.wal'))).toBe(true);
  });

  test('leaves out an unfinished write at the end of the spool', async () => {
    const [data, copy] = [join(directory.path, 'data'), join(directory.path, 'copy')];
    const server = await startServer(['--data', data], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    for (let batch = 0; batch < 3; batch++) await postRecords(server, PROCESS_API_KEY, 5);
    server.signal('SIGKILL');
    await server.ended;
    const segment = join(data, 'spool/000000000001.spool');
    truncateSync(segment, statSync(segment).size - 10);
    const { code, stdout } = await runDendro(['backup', copy, '--data', data]);
    expect(code).toBe(0);
    expect(stdout).toContain('10 records (0 stored, 10 in the spool)');
  });

  test('fails if the spool is damaged, and copies what is left when it is repeated', async () => {
    const [data, copy] = [join(directory.path, 'data'), join(directory.path, 'copy')];
    const server = await startServerHere(['--data', data], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    for (let batch = 0; batch < 3; batch++) await postRecords(server, PROCESS_API_KEY, 5);
    await server.stop();
    const segment = join(data, 'spool/000000000001.spool');
    truncateSync(segment, statSync(segment).size - 10);
    const failed = await runDendro(['backup', copy, '--data', data]);
    expect(failed).toMatchObject({ code: 1, stdout: '' });
    expect(failed.stderr).toContain(`dendro: nothing was copied: the spool of ${data}`);
    expect(existsSync(copy)).toBe(false);
    const repeated = await runDendro(['backup', copy, '--data', data]);
    expect(repeated).toMatchObject({ code: 0, stdout: expect.stringContaining('10 records') });
  });

  test('with a data directory that does not exist prints one line and creates nothing', async () => {
    const missing = join(directory.path, 'missing');
    const outcome = await runDendro(['backup', join(directory.path, 'copy'), '--data', missing]);
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain(`there is no data directory ${missing}`);
    expect(readdirSync(directory.path)).toEqual([]);
  });
});
