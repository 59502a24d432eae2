import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { createServer } from 'node:tls';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClickHouseUrl } from '../../src/store/clickhouse-url.ts';
import { newDatabaseUrl } from '../support/clickhouse.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  startServer,
} from '../support/process.ts';
import { createSelfSigned } from '../support/self-signed.ts';
import { runSql } from './run-sql.ts';

// The built program in processes of its own, starting with an empty database. Needs `npm run build`.

describe('dendro with --store clickhouse://…', () => {
  let workDirectory: ReturnType<typeof createTempDirectory>;
  let clickhouse: ClickHouseUrl;
  let env: Record<string, string>;
  beforeAll(() => {
    workDirectory = createTempDirectory();
    clickhouse = newDatabaseUrl();
    const [host] = clickhouse.urls.map(url => new URL(url).host);
    const { user, password } = clickhouse.writer;
    env = { DENDRO_STORE: `clickhouse://${user}:${password}@${host}/${clickhouse.database}` };
  });
  afterAll(async () => {
    await runSql({ ...clickhouse, database: 'default' }, `drop database if exists ${clickhouse.database}`);
    workDirectory.remove();
  });
  const run = (args: readonly string[], input = '') =>
    runDendro(args, { cwd: workDirectory.path, env, input });
  const lines = (ids: readonly string[]) =>
    ids.map(id => `${JSON.stringify({ id, project: 'acme', event_message: 'm' })}\n`).join('');

  test('serve without tables reports the missing table', async () => {
    const line = onlyLine(await run(['serve', '--port', '0', '--internal-port', '0']));
    expect(line).toMatch(
      /^dendro: cannot read from edge_logs in ClickHouse: .*`dendro schema clickhouse --apply`/,
    );
    if (clickhouse.writer.password !== '') expect(line).not.toContain(clickhouse.writer.password);
  });

  test('check reports why ClickHouse is unreachable', async () => {
    const unreachable = { DENDRO_STORE: 'clickhouse://u:secret@127.0.0.1:1/d' };
    const line = onlyLine(await runDendro(['check'], { cwd: workDirectory.path, env: unreachable }));
    expect(line).toMatch(/^dendro: the store is unreachable.*\(connect ECONNREFUSED 127\.0\.0\.1:1\)$/);
  });

  test('schema --apply creates the tables, and a second run reports that they are up to date', async () => {
    const apply = ['schema', 'clickhouse', '--apply', '--retention-days', '36500'];
    expect((await run(apply)).stdout).toBe(`schema of ${clickhouse.database}: applied version 1, 2\n`);
    expect((await run(apply)).stdout).toContain('tables and retention are up to date');
  });

  test('check, ingest and query work on ClickHouse', async () => {
    expect(await run(['check'])).toMatchObject({ code: 0, stderr: '' });
    expect((await run(['ingest', '-', '--source', 'edge'], lines(['a', 'b']))).code).toBe(0);
    const { stdout } = await run(['query', 'logs.all', '--project', 'acme', '--json']);
    expect(stdout).toMatch(/"id":"a".*"id":"b"/s);
  });

  test('clickhouses:// connects with TLS to a server with a trusted certificate only', async () => {
    const { cert, key } = createSelfSigned();
    const certFile = join(workDirectory.path, 'ca.pem');
    writeFileSync(certFile, cert);
    const { hostname, port } = new URL(clickhouse.urls[0] ?? '');
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
      runDendro(['check'], { cwd: workDirectory.path, env: { DENDRO_STORE: store, ...more } });
    expect(await check({ NODE_EXTRA_CA_CERTS: certFile })).toMatchObject({ code: 0, stderr: '' });
    expect((await check({})).code).toBe(1);
    tls.close();
  });

  test('check --parity reports endpoints that differ between two stores, and that all agree', async () => {
    const parity = ['check', '--parity', '--project', 'acme', '--packs', 'none']; // the search tests run on both stores
    expect(onlyLine(await run(parity))).toContain('there is no embedded store in');
    const line = `{"id":"c","project":"acme","event_message":"m","timestamp":"${new Date().toISOString()}"}`;
    expect((await run(['ingest', '-', '--source', 'edge', '--store', 'duckdb'], line)).code).toBe(0);
    const differing = await run(parity);
    expect(differing.code).toBe(1);
    expect(differing.stdout).toMatch(/^logs\.all\?project=acme.*: duckdb: 1 rows, clickhouse: 2 rows$/m);
    await runSql(clickhouse, 'truncate table edge_logs');
    expect((await run(['ingest', '-', '--source', 'edge'], line)).code).toBe(0);
    expect(await run(parity)).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/, [1-9]\d* rows: .*agree/),
    });
  });

  test('after servers are killed right after they acknowledge records, every record is stored once', async () => {
    const args = ['--data', 'killed'];
    const key = { DENDRO_API_KEY: PROCESS_API_KEY, ...env };
    const ids = Array.from({ length: 20 }, (_, i) => `k${i}`);
    for (let round = 0; round < 2; round++) {
      const server = await startServer(args, { cwd: workDirectory.path, env: key });
      for (const id of ids.slice(round * 10, round * 10 + 10)) {
        const { status } = await fetch(`${server.internalUrl}/api/logs?source_name=edge`, {
          method: 'POST',
          headers: { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/x-ndjson' },
          body: lines([id]),
        });
        expect(status).toBe(200);
      }
      await new Promise(resolve => setTimeout(resolve, round * 300));
      server.signal('SIGKILL');
      await server.ended;
    }
    const server = await startServer(args, { cwd: workDirectory.path, env: key });
    const countRows = () =>
      runSql(clickhouse, "select count(), uniqExact(id) from edge_logs where id like 'k%'");
    await expect.poll(countRows, { timeout: 30_000 }).toEqual([[20, 20]]);
    expect((await server.stop()).code).toBe(0);
  });
});
