import { once } from 'node:events';
import { mkdirSync, statSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { fetchResponse } from '../support/app.ts';
import { SLEEP, writeEndpointFolders } from '../support/custom-endpoints.ts';
import {
  createTempDirectory,
  findFreePort,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  type ServerHere,
  startServer,
  startServerHere,
} from '../support/process.ts';
import { openConnection, rawRequest } from '../support/raw-http.ts';

const env = { DENDRO_API_KEY: PROCESS_API_KEY };
const headers = { 'X-API-KEY': PROCESS_API_KEY };

describe('dendro serve', () => {
  let directory: ReturnType<typeof createTempDirectory>;
  let server: ServerHere | undefined;
  beforeEach(() => {
    directory = createTempDirectory();
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
    directory.remove();
  });

  test('prints the addresses of both listeners and nothing else on standard output', async () => {
    server = await startServerHere(['--data', directory.path], { env });
    expect(server.stdout()).toMatch(
      /^public: listening on http:\/\/127\.0\.0\.1:\d+\ninternal: listening on http:\/\/127\.0\.0\.1:\d+\n$/,
    );
    expect(server.url).not.toBe(server.internalUrl);
    for (const url of [server.url, server.internalUrl])
      expect((await fetchResponse(`${url}/health`, {})).text).toMatch(
        /^\{"status":"ok","version":"[^"]+","store":"duckdb"\}$/,
      );
    const response = await fetchResponse(`${server.url}/api/endpoints/query/logs.all?project=a`, { headers });
    expect(response.text).toBe('{"result":[]}');
  });

  test('serves on, and stops with exit code 0, if nobody reads its log any more', async () => {
    const deaf = await startServer(['--data', directory.path, '--access-log'], { env });
    deaf.closeOutput();
    for (let request = 0; request < 5; request++) {
      expect((await fetchResponse(`${deaf.internalUrl}/health`, {})).status).toBe(200);
      await sleep(20);
    }
    expect((await deaf.stop()).code).toBe(0);
  });

  test('creates a missing data directory with mode 0700', async () => {
    const data = `${directory.path}/deep/er`;
    server = await startServerHere(['--data', data], { env });
    expect(statSync(data).mode & 0o777).toBe(0o700);
  });

  test('serves both listeners on one port if both flags name the same port', async () => {
    const port = String(await findFreePort());
    server = await startServerHere(['--data', directory.path, '--port', port, '--internal-port', port], {
      env,
    });
    expect(server.url).toBe(`http://127.0.0.1:${port}`);
    expect(server.internalUrl).toBe(server.url);
    expect((await fetchResponse(`${server.url}/health`, {})).status).toBe(200);
    expect((await fetchResponse(`${server.url}/api/endpoints`, { headers })).status).toBe(200);
    expect((await server.stop()).code).toBe(0);
  });

  const BUILT_IN_NAMES = ['functions.invocation-stats', 'logs.all', 'usage.api-counts'];
  test.each([
    ['has the endpoints of the explore pack by default', '', expect.arrayContaining(['logs.search'])],
    ['has exactly the three built-in endpoints with DENDRO_PACKS=none', 'none', BUILT_IN_NAMES],
  ])('%s', async (_, DENDRO_PACKS, names) => {
    server = await startServerHere(['--data', directory.path], { env: { ...env, DENDRO_PACKS } });
    const { rows } = await fetchResponse(`${server.url}/api/endpoints`, { headers });
    expect(rows.map(({ name }) => name)).toEqual(names);
  });

  test('a damaged store: one line, exit 1', async () => {
    writeFileSync(join(directory.path, 'dendro.duckdb'), 'not a database '.repeat(1000));
    const args = ['serve', '--data', directory.path, '--port', '0', '--internal-port', '0'];
    const outcome = await runDendro(args, { env });
    expect(outcome.code).toBe(1);
    expect(onlyLine(outcome)).toContain(directory.path);
  });

  test('SIGHUP loads the endpoint folders again and does not stop the server', async () => {
    const endpoints = join(directory.path, 'endpoints');
    mkdirSync(endpoints);
    server = await startServerHere(['--data', directory.path, '--endpoints', endpoints], { env });
    server.signal('SIGHUP');
    await expect
      .poll(() => server?.stderr())
      .toMatch(/endpoints reloaded: \d+; added, changed or removed: 0/);
    expect((await fetchResponse(`${server.url}/health`, {})).status).toBe(200);
  });

  test('SIGHUP does not end a server that is still loading its modules', async () => {
    const preload = join(directory.path, 'hang-up.cjs'); // sends the signal as soon as the first lines of the program have run
    writeFileSync(preload, "setImmediate(() => process.kill(process.pid, 'SIGHUP'))");
    const options = { env: { ...env, NODE_OPTIONS: `--require=${preload}` } };
    const started = await startServer(['--data', join(directory.path, 'data')], options);
    expect((await started.stop()).code).toBe(0);
  });

  describe.each(['SIGTERM', 'SIGINT'] as const)('%s', signal => {
    test('stops an idle server immediately with exit code 0', async () => {
      server = await startServerHere(['--data', directory.path], { env });
      const idle = await openConnection(server.url);
      await idle.ask(rawRequest('GET /health'));
      server.signal(signal);
      const { code, stderr } = await server.ended;
      expect(code).toBe(0);
      expect(stderr).toContain(signal);
      await idle.ended;
    });

    test('finishes a running query, rejects new connections meanwhile, and exits with 0', async () => {
      const custom = writeEndpointFolders({ sleep: SLEEP });
      server = await startServerHere(['--data', directory.path, '--endpoints', custom.folder], { env });
      const connection = await openConnection(server.url);
      await connection.ask(rawRequest('GET /health'));
      connection.write(rawRequest('GET /api/endpoints/query/test.sleep?milliseconds=8000', headers));
      await fetchResponse(`${server.url}/health`, {}); // the response shows that the slow request has started
      server.signal(signal);
      await expect.poll(() => server?.stderr()).toContain('finishing running requests');
      await untilRefused(server.url);
      expect(connection.rest()).toBe(''); // the slow request is still running
      expect(await connection.next()).toMatchObject({ status: 200, body: '{"result":[{"answer":1}]}' });
      expect((await server.ended).code).toBe(0);
      custom.remove();
    });
  });

  test('SIGTERM stops a server that is still starting, with exit code 0', async () => {
    const silent = createServer(); // in place of ClickHouse: never responds, so the start waits
    await once(silent.listen(0, '127.0.0.1'), 'listening');
    const store = `clickhouse://u:p@127.0.0.1:${(silent.address() as AddressInfo).port}/d`;
    const ports = ['--port', '0', '--internal-port', '0'];
    const stopped = await runDendro(['serve', '--data', directory.path, '--store', store, ...ports], {
      env,
      signalAfter: async () => {
        await once(silent, 'connection');
        return 'SIGTERM';
      },
    });
    silent.close();
    expect([stopped.code, stopped.stdout]).toEqual([0, '']);
    expect(stopped.stderr).toMatch(/SIGTERM.*\n.*stopped.*\n$/);
    server = await startServerHere(['--data', directory.path], { env }); // the directory is not locked
  });

  test('incomplete requests on both listeners delay the stop by 10 s in total', async () => {
    server = await startServerHere(['--data', directory.path], { env });
    for (const url of [server.url, server.internalUrl])
      (await openConnection(url)).write('GET /health HTTP/1.1\r\nHost: a\r\n');
    await fetchResponse(`${server.url}/health`, {});
    server.signal('SIGTERM');
    const signalledAt = performance.now();
    expect((await server.ended).code).toBe(0);
    expect(performance.now() - signalledAt).toBeLessThan(20_000); // one after the other, they take longer
  });
});

/** The line on standard error may appear shortly before the listener is closed. */
async function untilRefused(url: string): Promise<void> {
  for (;;) {
    try {
      (await openConnection(url)).close();
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ECONNREFUSED') return;
    }
    await sleep(10);
  }
}
