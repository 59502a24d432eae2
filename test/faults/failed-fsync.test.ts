import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { replaySpool } from '../../src/intake/applier.ts';
import { openStore } from '../../src/store/open-store.ts';
import { fetchResponse, testStoreOptions } from '../support/app.ts';
import { reportFault } from '../support/fault-report.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  runDendro,
  startServer,
} from '../support/process.ts';
import { savedQuery } from '../support/store.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { kill, queryStatus, serve } from './server.ts';
import { createSyncShim, type SyncShim } from './sync-shim.ts';

/** As many records as a memtable can have: the server flushes them to the file at once. */
const ROW_GROUP_ROWS = 122_880;

let shim: SyncShim | undefined;
let directory: ReturnType<typeof createTempDirectory>;
beforeEach(() => {
  shim = createSyncShim('dendro.duckdb');
  directory = createTempDirectory();
});
afterEach(() => {
  shim?.remove();
  directory.remove();
});

function requireShim({ skip }: TestContext): SyncShim {
  return shim ?? skip('A FAILED FSYNC IS NOT TESTED HERE: it needs Linux and a C compiler');
}

test('if fsync of the DuckDB file fails, the server stops with one line and exit code 1, and no record is lost', async context => {
  const { env, fail } = requireShim(context);
  const server = await startServer(['--data', directory.path], {
    env: { ...env, DENDRO_API_KEY: PROCESS_API_KEY },
  });
  const headers = { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/x-ndjson' };
  const post = (count: number) =>
    fetchResponse(`${server.internalUrl}/api/logs?source_name=postgres`, {
      method: 'POST',
      headers,
      body: '{"project":"p","message":"x"}\n'.repeat(count),
    });
  try {
    expect((await post(1)).status).toBe(200);
    const linesBefore = server.stderr();
    fail();
    expect((await post(ROW_GROUP_ROWS)).status).toBe(200);
    const { code, stderr } = await server.ended;
    expect(code).toBe(1);
    expect(onlyLine({ code, stderr: stderr.slice(linesBefore.length), stdout: '' })).toBe(
      'dendro: DuckDB invalidated its file; exiting. No acknowledged data is lost; restart the server. Reason: FATAL Error: fsync failed!',
    );
  } finally {
    server.signal('SIGKILL');
    await server.ended;
  }
  const store = await openStore(testStoreOptions(directory.path));
  await replaySpool(directory.path, store, () => {});
  const { rows } = await store.query(savedQuery('select count(*) from postgres_logs', ['integer']), {});
  await store.close();
  const difference = ROW_GROUP_ROWS + 1 - Number(rows[0]?.[0]);
  reportFault({
    fault: 'failed fsync',
    runs: 1,
    outcome: 'dendro.duckdb: exit code 1 with one line; a restart has every record',
    lost: Math.max(0, difference),
    duplicated: Math.max(0, -difference),
  });
});

test('if fsync of the spool fails, senders get 503 until it succeeds again, and no record is lost', async context => {
  requireShim(context).remove();
  shim = createSyncShim('.spool');
  const { env, fail, repair } = requireShim(context);
  const ledger = new Ledger();
  const server = await serve(directory.path, [], { env });
  try {
    const shape = { kinds: ['edge'], records: [1, 50] } as const;
    const sendSome = async () => {
      const statuses = [];
      for (let i = 0; i < 10; i++)
        statuses.push(await ledger.send(server.internalUrl, ledger.createBatch(shape)));
      return new Set(statuses);
    };
    expect([...(await sendSome())]).toEqual([200]);
    fail();
    const failing = [...(await sendSome())];
    const query = await queryStatus(server);
    repair();
    const retried = new Set([...(await ledger.resend(server.internalUrl)), ...(await sendSome())]);
    await kill(server);
    const outcome = `spool: senders get ${failing.join(' and ')}, queries ${query}; then senders get ${[...retried].join(' and ')}`;
    await auditAndReport({ fault: 'failed fsync', runs: 1, outcome }, directory.path, ledger);
    expect([failing, query, [...retried]]).toEqual([[503], 200, [200]]);
  } finally {
    await kill(server);
  }
});

test('if fsync of the tokens file fails, the command fails with one line and the earlier tokens stay valid', async context => {
  requireShim(context).remove();
  shim = createSyncShim('tokens.json');
  const { env, fail, repair } = requireShim(context);
  const create = (name: string) =>
    runDendro(['token', 'create', '--name', name, '--scope', 'query', '--data', directory.path], { env });
  expect((await create('a')).code).toBe(0);
  fail();
  const failed = await create('b');
  repair();
  const { stdout } = await runDendro(['token', 'list', '--json', '--data', directory.path]);
  const names = (JSON.parse(stdout) as { tokens: { name: string }[] }).tokens.map(({ name }) => name);
  const outcome = `tokens.json: one line, exit code ${failed.code}; the earlier tokens stay valid`;
  reportFault({
    fault: 'failed fsync',
    runs: 1,
    outcome,
    lost: names.includes('a') ? 0 : 1,
    duplicated: names.length - new Set(names).size,
  });
  expect(failed.code).toBe(1);
  expect(onlyLine(failed)).toContain('tokens.json');
  expect(names).toEqual(['a']);
});

test('the data directory is synced after every commit and every checkpoint', async context => {
  const { env, synced } = requireShim(context);
  for (let run = 0; run < 2; run++) {
    const args = ['ingest', '-', '--source', 'edge', '--data', directory.path];
    const input = `{"project":"p","message":"run ${run}"}\n`;
    expect(await runDendro(args, { input, env })).toMatchObject({ code: 0 });
  }
  const names = new Map([
    [directory.path, 'directory'],
    [`${directory.path}/dendro.duckdb.wal`, 'log'],
    [`${directory.path}/dendro.duckdb`, 'file'],
  ]);
  const all = synced().flatMap(path => names.get(path) ?? []);
  const order = all.slice(all.indexOf('file') + 1); // after the creation of the file
  // A start syncs the file and the log that it finds. A commit syncs the log, which it may have created. A checkpoint syncs the log
  // and the file, then deletes the log.
  const steps = ['', ...order].join(' ').split(' directory');
  expect(steps.length).toBeGreaterThan(4);
  expect(steps.pop()).toBe('');
  for (const step of steps) expect(step.trim()).toMatch(/^(file( log)?|(log( log)*)?( file)*)$/);
});

test('a change of the tokens file is synced with its directory', async context => {
  const { env, synced } = requireShim(context);
  const args = ['token', 'create', '--name', 'a', '--scope', 'query', '--data', directory.path];
  expect(await runDendro(args, { env })).toMatchObject({ code: 0 });
  expect(synced().at(-2)).toContain('tokens.json');
  expect(synced().at(-1)).toBe(directory.path);
});
