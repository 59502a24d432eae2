import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { ensurePrograms } from '../../scripts/debian.mjs';
import { replaySpool } from '../../src/intake/applier.ts';
import { openStore } from '../../src/store/open-store.ts';
import { fetchResponse, testStoreOptions } from '../support/app.ts';
import {
  createTempDirectory,
  findFreePort,
  PROCESS_API_KEY,
  type ServerProcess,
  startServer,
} from '../support/process.ts';
import { savedQuery } from '../support/store.ts';

const EXAMPLE = join(import.meta.dirname, '../../docs/shippers/syslog-ng.conf');
const COUNT = 3_000;
const env = { DENDRO_API_KEY: PROCESS_API_KEY };

let directory: ReturnType<typeof createTempDirectory>;
let shipper: ChildProcess | undefined;
let server: ServerProcess | undefined;
beforeEach(() => {
  const missing = ensurePrograms({ 'syslog-ng': ['syslog-ng-core', 'syslog-ng-mod-http'] });
  expect(missing, 'missing programs that this test needs').toEqual([]);
  directory = createTempDirectory();
});
afterEach(async () => {
  if (shipper?.exitCode === null) {
    shipper.kill('SIGKILL');
    await once(shipper, 'exit');
  }
  await server?.stop();
  directory.remove();
});

/** Writes the example configuration of the docs with the token, ports and paths of this test. */
function writeConfiguration(intakePort: number, sourcePort: number): string {
  const text = readFileSync(EXAMPLE, 'utf8')
    .replace('127.0.0.1:4001', `127.0.0.1:${intakePort}`)
    .replace('port(6514)', `port(${sourcePort})`)
    .replace('X-API-KEY: TOKEN', `X-API-KEY: ${PROCESS_API_KEY}`)
    .replace('/var/lib/syslog-ng', directory.path);
  const file = join(directory.path, 'syslog-ng.conf');
  writeFileSync(file, text, { mode: 0o600 });
  return file;
}

function startShipper(configuration: string): ChildProcess {
  const pathOf = (name: string) => join(directory.path, name);
  return spawn(
    'syslog-ng',
    [
      ...['--foreground', '--no-caps', '--cfgfile', configuration, '--persist-file', pathOf('persist')],
      ...['--pidfile', pathOf('pid'), '--control', pathOf('control')],
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
}

async function connectTo(port: number) {
  for (let attempt = 0; ; attempt++) {
    const socket = connect(port, '127.0.0.1');
    try {
      await once(socket, 'connect');
      return socket;
    } catch (error) {
      if (attempt === 100) throw error;
      await sleep(100);
    }
  }
}

test('syslog-ng ships 3,000 lines while the server is killed and restarted, and each line is stored once', async () => {
  const [port, internalPort, sourcePort] = [await findFreePort(), await findFreePort(), await findFreePort()];
  const args = ['--data', 'data', '--port', String(port), '--internal-port', String(internalPort)];
  const start = () => startServer(args, { cwd: directory.path, env });
  server = await start();
  shipper = startShipper(writeConfiguration(internalPort, sourcePort));
  const socket = await connectTo(sourcePort);

  for (let i = 0; i < COUNT; i++) {
    socket.write(`<13>${new Date().toISOString()} alpha test[${i}]: line ${i} "quoted" \\ ä 😀\n`);
    if (i % 100 === 0) await sleep(20);
    if (i === COUNT / 2) {
      server.signal('SIGKILL');
      await server.ended;
      server = await start();
    }
  }
  socket.end();

  const headers = { 'X-API-KEY': PROCESS_API_KEY };
  const countStored = async () => {
    const url = `${server?.url}/api/endpoints/query/logs.top?project=alpha&kind=postgres&field=kind`;
    return (await fetchResponse(url, { headers })).rows[0]?.['count'];
  };
  const readMessages = async () => {
    await server?.stop();
    const dataDirectory = join(directory.path, 'data');
    const store = await openStore(testStoreOptions(dataDirectory));
    await replaySpool(dataDirectory, store, () => {});
    const query = savedQuery('select event_message from postgres_logs', ['text'], 2 * COUNT);
    const { rows } = await store.query(query, {});
    await store.close();
    return rows.map(([message]) => message);
  };
  await expect.poll(countStored, { timeout: 120_000, interval: 500 }).toBeGreaterThanOrEqual(COUNT);
  const expected = Array.from({ length: COUNT }, (_, i) => `line ${i} "quoted" \\ ä 😀`);
  expect((await readMessages()).sort()).toEqual(expected.sort());
}, 300_000);
