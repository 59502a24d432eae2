// Kills servers while clients send JSON and OTLP, load files, search, erase a project and take backups. DENDRO_FAULT_KILLS sets the
// number of kills.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { Random } from '../../src/demo/random.ts';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { sized, tally } from '../support/fault-report.ts';
import { listParts } from '../support/parts.ts';
import { createTempDirectory, PROCESS_API_KEY, type ServerProcess, spawnDendro } from '../support/process.ts';
import { SEED } from '../support/seed.ts';
import { auditAndReport, auditDataDirectory } from './audit.ts';
import { endUnderLoad } from './end-under-load.ts';
import { type BatchShape, Ledger } from './load.ts';
import { kill, queryStatus, serve } from './server.ts';

const random = new Random(SEED);
const KILLS = Number(process.env['DENDRO_FAULT_KILLS'] ?? sized(4, 40));
/** One server in this many runs long enough for a compaction, which starts 10 s after the server. */
const LONG_RUN = 4;
/** Each of them becomes a part, so that there are enough for a compaction. */
const FILES = 6;
const STOPS = sized(3, 20);
const PROJECT = 'qkzvxwyjfhbg';
/** The ledger has no batch with this number: records of the erased project are not audited. */
const ERASED_BATCH = 999_999_999;

const SENDERS: readonly BatchShape[] = [
  { kinds: ['edge'], records: [1_000, 4_000] },
  { kinds: LOG_KINDS, records: [1, 20] },
  { kinds: LOG_KINDS, records: [1, 200], isOtlp: true },
];

const directory = createTempDirectory();
const data = join(directory.path, 'data');
const ledger = new Ledger();
let token: string;
let backups = 0;

/** Loads files with a command that is killed, then with one that is not. */
async function loadFiles(): Promise<void> {
  const batches = Array.from({ length: FILES }, () =>
    ledger.createBatch({ kinds: ['edge'], records: [100, 2_000] }),
  );
  const files = batches.map(batch => {
    const file = join(directory.path, `${batch.number}.ndjson.gz`);
    writeFileSync(file, batch.body());
    return file;
  });
  const args = ['ingest', ...files, '--source', 'edge', '--data', data];
  await spawnDendro(args, { killAfterMs: 200 + random.next() * 2_000 });
  expect(await spawnDendro(args)).toMatchObject({ code: 0 });
  for (const batch of batches) batch.acknowledged = true;
}

async function request({ internalUrl }: ServerProcess, path: string, key: string, body?: unknown) {
  const init = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(`${internalUrl}${path}`, { ...init, headers: { 'X-API-KEY': key } });
  return { status: response.status, body: await response.json() };
}

/** Sends records of a project and erases it. Resolves when the erasure is done. */
async function erase(server: ServerProcess): Promise<void> {
  const records = Array.from({ length: 100 }, (_, i) => ({
    ...{ project: PROJECT, id: `${ERASED_BATCH}-${i}-${Math.random()}`, message: `of ${PROJECT}` },
  }));
  const stored = await request(server, '/api/logs?source_name=edge', PROCESS_API_KEY, records);
  expect(stored.status).toBe(200);
  expect((await request(server, '/api/admin/erase', token, { project: PROJECT })).status).toBe(202);
  for (;;) {
    const { body } = await request(server, '/api/admin/erase', token);
    if ((body as { result: { state: string } }).result.state === 'done') return;
    await sleep(50);
  }
}

/** Repeats the work until the server has ended. */
function keep(work: (server: ServerProcess) => Promise<unknown>) {
  return async (server: ServerProcess, signal: AbortSignal) => {
    const isAlive = () => !signal.aborted && server.isRunning();
    while (isAlive())
      await work(server).catch(error => {
        if (isAlive() && !isConnectionError(error)) throw error;
      });
  };
}

/** Also the error of a request that the end of the server has interrupted. */
function isConnectionError(error: unknown): boolean {
  return error instanceof TypeError;
}

async function backUp({ internalUrl }: ServerProcess): Promise<string | undefined> {
  const target = join(directory.path, `backup-${++backups}`);
  const { code } = await spawnDendro(['backup', target, '--url', internalUrl, '--token', token]);
  return code === 0 ? target : undefined;
}

async function backUpAndDelete(server: ServerProcess): Promise<void> {
  const target = await backUp(server);
  if (target !== undefined) rmSync(target, { recursive: true });
}

test('after kill -9 under mixed load every acknowledged record is stored once, and no erased record is left', async () => {
  try {
    const create = ['token', 'create', '--name', 'admin', '--scope', 'admin', '--data', data];
    token = /dnd_\S+/.exec((await spawnDendro(create)).stdout)?.[0] ?? '';
    const others = [keep(erase), keep(backUpAndDelete), keep(queryStatus), keep(queryStatus)];
    for (let kills = 0; kills < KILLS; kills++) {
      await loadFiles();
      const [minMs, maxMs] = kills % LONG_RUN === LONG_RUN - 1 ? [11_000, 15_000] : [50, 3_000];
      await endUnderLoad(data, ledger, { signal: 'SIGKILL', minMs, maxMs, senders: SENDERS, others });
    }
    const server = await serve(data);
    try {
      await erase(server);
      const countParts = () => listParts(data, 'edge').length;
      await expect.poll(countParts, { timeout: 120_000 }).toBeLessThan(FILES * KILLS);
      const backup = (await backUp(server)) ?? expect.fail('the backup failed');
      expect((await server.stop()).code).toBe(0);
      expect(findFiles(PROJECT)).toEqual([]);
      expect(await auditDataDirectory(backup, ledger)).toMatchObject({ wrong: [], partial: [] });
    } finally {
      await kill(server);
    }
    const outcome =
      `JSON, OTLP, files, searches, erasures, backups and compaction: every restart succeeds; ` +
      `${ledger.acknowledgedRecords} acknowledged records audited`;
    await auditAndReport({ fault: 'kill -9 under mixed load', runs: KILLS, outcome }, data, ledger);
  } finally {
    directory.remove();
  }
});

test('after SIGTERM under load the exit code is 0, and every acknowledged record is stored once', async () => {
  const stopped = createTempDirectory();
  const sent = new Ledger();
  const codes: (number | null)[] = [];
  try {
    while (codes.length < STOPS)
      codes.push((await endUnderLoad(stopped.path, sent, { signal: 'SIGTERM' })).code);
    const outcome = `exit code ${tally(codes)}; every restart succeeds`;
    await auditAndReport({ fault: 'SIGTERM under load', runs: STOPS, outcome }, stopped.path, sent);
    expect(codes.filter(code => code !== 0)).toEqual([]);
  } finally {
    stopped.remove();
  }
});

/** The files of the data directory that contain the text. */
function findFiles(text: string): string[] {
  return readdirSync(data, { recursive: true, withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(entry => join(entry.parentPath, entry.name))
    .filter(file => readFileSync(file).includes(text));
}
