// Limits that the operating system sets for the process: few file descriptors and little memory.
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { sized } from '../support/fault-report.ts';
import {
  createTempDirectory,
  DENDRO_COMMAND,
  onlyLine,
  PROCESS_API_KEY,
  type ServerProcess,
  spawnDendro,
} from '../support/process.ts';
import { openConnection } from '../support/raw-http.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { kill, queryStatus, readUse, serve } from './server.ts';

const MIB = 1024 * 1024;
const SECONDS = sized(5, 60);
const MIN_DESCRIPTORS = 96;
/** More than the descriptors allow. */
const CONNECTIONS = 100;
const MEMORY_LIMIT_MIB = 400;

let directory: ReturnType<typeof createTempDirectory>;
let ledger: Ledger;
let server: ServerProcess | undefined;
beforeEach(() => {
  directory = createTempDirectory();
  ledger = new Ledger();
});
afterEach(async () => {
  if (server !== undefined) await kill(server);
  directory.remove();
});

/** Senders that continue after a failed request, and a query now and then. Returns the statuses of the queries. */
async function sendFor(seconds: number, { internalUrl }: ServerProcess, senders: number, padding = 0) {
  const end = performance.now() + seconds * 1000;
  const shape = { kinds: ['edge'], records: [1, 200], padding } as const;
  const keepSending = async () => {
    while (performance.now() < end)
      if ((await ledger.send(internalUrl, ledger.createBatch(shape))) !== 200) await sleep(50);
  };
  await Promise.all(Array.from({ length: senders }, keepSending));
}

test('with 64 file descriptors the program exits with one line; with 96, clients beyond them are disconnected', async () => {
  const limit = (count: number) => ['prlimit', `--nofile=${count}:${count}`, ...DENDRO_COMMAND] as const;
  const tooFew = await spawnDendro(['serve', '--data', directory.path], { command: [...limit(64)] });
  server = await serve(directory.path, [], { command: [...limit(MIN_DESCRIPTORS)] });
  await sendFor(SECONDS, server, CONNECTIONS);
  const statuses = await ledger.resend(server.internalUrl);
  const after = await queryStatus(server);
  const { code } = await server.stop();
  const refusals = ledger.refusals === '' ? 'all requests get 200' : `some requests get ${ledger.refusals}`;
  const outcome =
    `64: one line, exit code ${tooFew.code}; ${MIN_DESCRIPTORS}, with ${CONNECTIONS} senders: ${refusals}, ` +
    `retries get ${[...new Set(statuses)].join(' and ') || '200'}`;
  await auditAndReport({ fault: 'few file descriptors', runs: 2, outcome }, directory.path, ledger);
  expect(tooFew.code).toBe(1);
  expect(onlyLine(tooFew)).toBe(
    'dendro: the limit of open files is 64, at least 96 are needed; raise it: ulimit -n 1024',
  );
  expect(statuses.filter(status => status !== 200)).toEqual([]);
  expect([after, code]).toEqual([200, 0]);
});

test('without a free descriptor for the thread that parses bodies, senders get 503, and later 200', async () => {
  server = await serve(directory.path);
  const setLimit = (limit: number) =>
    execFileSync('prlimit', ['--pid', String(server?.pid), `--nofile=${limit}:4096`]);
  const body = '{"project":"p0","message":"sent"}';
  const headers = `Host: localhost\r\nX-API-KEY: ${PROCESS_API_KEY}\r\nContent-Length: ${body.length}`;
  const post = `POST /api/logs?source_name=edge HTTP/1.1\r\n${headers}\r\n\r\n${body}`;
  const connection = await openConnection(server.internalUrl); // a new one would need a descriptor
  try {
    expect((await connection.ask('GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n')).status).toBe(200);
    setLimit(lowestFreeDescriptor(server));
    expect((await connection.ask(post)).status).toBe(503);
    setLimit(4096);
    expect((await connection.ask(post)).status).toBe(200);
  } finally {
    connection.close();
  }
});

/** A limit of open files is a limit of their numbers, not of their count: processes can inherit a high number. */
function lowestFreeDescriptor({ pid }: ServerProcess): number {
  const used = new Set(readdirSync(`/proc/${pid}/fd`).map(Number));
  let lowest = 0;
  while (used.has(lowest)) lowest++;
  return lowest;
}

/** A cgroup where systemd runs. Elsewhere a limit of the private memory, at which allocations fail instead of an OOM kill. */
const memoryLimit = existsSync('/run/systemd/system')
  ? {
      name: 'cgroup',
      command: ['systemd-run', '--scope', '--quiet', '-p', `MemoryMax=${MEMORY_LIMIT_MIB}M`],
    }
  : { name: 'RLIMIT_DATA', command: ['prlimit', `--data=${MEMORY_LIMIT_MIB * MIB}`] };

test('with little memory the server stays within it or is restarted, and no record is lost', async () => {
  const [program = '', ...args] = memoryLimit.command;
  const endings: string[] = [];
  for (let start = 0; start < sized(1, 5); start++) {
    server = await serve(directory.path, [], { command: [program, ...args, ...DENDRO_COMMAND] });
    await sendFor(SECONDS, server, 8, 2_000);
    const status = await queryStatus(server);
    if (status !== undefined) await ledger.resend(server.internalUrl);
    const peakMib = status === undefined ? undefined : Math.ceil(readUse(server).peakBytes / MIB / 50) * 50;
    const { code } = await server.stop();
    endings.push(
      peakMib === undefined
        ? `the process ends with ${code === null ? 'a signal' : `exit code ${code}`}, a restart has every record`
        : `at most ${peakMib} MiB used, queries get ${status}`,
    );
  }
  const refusals = ledger.refusals === '' ? '' : `; some senders get ${ledger.refusals}`;
  const outcome = `${MEMORY_LIMIT_MIB} MiB (${memoryLimit.name}): ${[...new Set(endings)].join(', ')}${refusals}`;
  const row = { fault: 'memory limit', runs: endings.length, outcome };
  await auditAndReport(row, directory.path, ledger);
  expect(ledger.statuses.get(413)).toBeUndefined(); // a shipper would drop the records
});
