import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { newDatabase } from '../support/clickhouse.ts';
import { makeFolder, onlyLine, PROCESS_API_KEY, runDendro, startServer } from '../support/process.ts';
import { makeSelfSigned } from '../support/self-signed.ts';
import { ask } from './ask.ts';

// The program as its users run it, from an empty database on: needs a build.

describe('dendro with --store clickhouse://…', () => {
  let folder: ReturnType<typeof makeFolder>;
  let address: ClickHouseUrl;
  let env: Record<string, string>;
  beforeAll(() => {
    folder = makeFolder();
    address = newDatabase();
    const [host] = address.urls.map(url => new URL(url).host);
    const { user, password } = address.writer;
    env = { DENDRO_STORE: `clickhouse://${user}:${password}@${host}/${address.database}` };
  });
  afterAll(async () => {
    await ask({ ...address, database: 'default' }, `drop database if exists ${address.database}`);
    folder.remove();
  });
  const run = (args: readonly string[], input = '') => runDendro(args, { cwd: folder.path, env, input });
  const lines = (ids: readonly string[]) =>
    ids.map(id => `${JSON.stringify({ id, project: 'acme', event_message: 'm' })}\n`).join('');

  test('serve says what is missing before there are tables', async () => {
    const line = onlyLine(await run(['serve', '--port', '0', '--internal-port', '0']));
    expect(line).toMatch(/^dendro: ClickHouse cannot be read from \(edge_logs\): /);
    if (address.writer.password !== '') expect(line).not.toContain(address.writer.password);
  });

  test('a ClickHouse that cannot be reached is told with the reason', async () => {
    const nobody = { DENDRO_STORE: 'clickhouse://u:secret@127.0.0.1:1/d' };
    const line = onlyLine(await runDendro(['check'], { cwd: folder.path, env: nobody }));
    expect(line).toMatch(/^dendro: the store is out of reach.*\(connect ECONNREFUSED 127\.0\.0\.1:1\)$/);
  });

  test('schema makes the tables, and says so the second time', async () => {
    const apply = ['schema', 'clickhouse', '--apply', '--retention-days', '36500'];
    expect((await run(apply)).stdout).toBe(`schema of ${address.database}: applied 1\n`);
    expect((await run(apply)).stdout).toContain('tables and retention are up to date');
  });

  test('check, ingest and query work on it', async () => {
    expect(await run(['check'])).toMatchObject({ code: 0, stderr: '' });
    expect((await run(['ingest', '-', '--source', 'edge'], lines(['a', 'b']))).code).toBe(0);
    const { stdout } = await run(['query', 'logs.all', '--project', 'acme', '--json']);
    expect(stdout).toMatch(/"id":"a".*"id":"b"/s);
  });

  test('speaks TLS with clickhouses://, to a server whose certificate it trusts', async () => {
    const { cert, key } = makeSelfSigned();
    const certFile = join(folder.path, 'ca.pem');
    writeFileSync(certFile, cert);
    const { hostname, port } = new URL(address.urls[0] ?? '');
    const tls = createServer({ cert, key }, socket => {
      const server = connect(Number(port), hostname);
      socket.pipe(server).pipe(socket);
      for (const end of [socket, server]) end.on('error', () => socket.destroy());
    }).listen(0, '127.0.0.1');
    await once(tls, 'listening');
    const { port: tlsPort } = tls.address() as AddressInfo;
    const store =
      env['DENDRO_STORE']?.replace('clickhouse:', 'clickhouses:').replace(/:\d+\//, `:${tlsPort}/`) ?? '';
    const check = (more: Record<string, string>) =>
      runDendro(['check'], { cwd: folder.path, env: { DENDRO_STORE: store, ...more } });
    expect(await check({ NODE_EXTRA_CA_CERTS: certFile })).toMatchObject({ code: 0, stderr: '' });
    expect((await check({})).code).toBe(1);
    tls.close();
  });

  test('check --parity tells where two stores differ, and where they agree', async () => {
    const parity = ['check', '--parity', '--project', 'acme'];
    expect(onlyLine(await run(parity))).toContain('there is no embedded store in');
    const line = `{"id":"c","project":"acme","event_message":"m","timestamp":"${new Date().toISOString()}"}`;
    expect((await run(['ingest', '-', '--source', 'edge', '--store', 'duckdb'], line)).code).toBe(0);
    const differing = await run(parity);
    expect(differing.code).toBe(1);
    expect(differing.stdout).toMatch(/^logs\.all\?project=acme.*: 1 rows here, 2 there$/m);
    await ask(address, 'truncate table edge_logs');
    expect((await run(['ingest', '-', '--source', 'edge'], line)).code).toBe(0);
    expect(await run(parity)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/, [1-9]\d* rows: .*agree/),
    });
  });

  test('a server that is killed right after it acknowledged has every record, once', async () => {
    const args = ['--data', 'killed'];
    const key = { DENDRO_API_KEY: PROCESS_API_KEY, ...env };
    const ids = Array.from({ length: 40 }, (_, i) => `k${i}`);
    for (let round = 0; round < 4; round++) {
      const server = await startServer(args, { cwd: folder.path, env: key });
      for (const id of ids.slice(round * 10, round * 10 + 10)) {
        const { status } = await fetch(`${server.internalUrl}/api/logs?source_name=edge`, {
          method: 'POST',
          headers: { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/x-ndjson' },
          body: lines([id]),
        });
        expect(status).toBe(200);
      }
      await new Promise(resolve => setTimeout(resolve, round * 150));
      server.signal('SIGKILL');
      await server.ended;
    }
    const server = await startServer(args, { cwd: folder.path, env: key });
    const counted = () => ask(address, "select count(), uniqExact(id) from edge_logs where id like 'k%'");
    await expect.poll(counted, { timeout: 30_000 }).toEqual([[40, 40]]);
    expect((await server.stop()).code).toBe(0);
  });
});
