import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { replaySpool } from '../../src/intake/applier.ts';
import { ROW_GROUP_ROWS } from '../../src/store/duckdb/checksum.ts';
import { openStore } from '../../src/store/open-store.ts';
import { fetchResponse, testStoreOptions } from '../support/app.ts';
import { reportFault } from '../support/fault-report.ts';
import { createTempDirectory, onlyLine, PROCESS_API_KEY, type ServerProcess } from '../support/process.ts';
import { savedQuery } from '../support/store.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { kill, queryStatus, serve } from './server.ts';
import { createSyncShim, type SyncShim } from './sync-shim.ts';

let shim: SyncShim | undefined;
let directory: ReturnType<typeof createTempDirectory>;
let data: string;
beforeEach(() => {
  directory = createTempDirectory();
  data = join(directory.path, 'data');
});
afterEach(() => {
  shim?.remove();
  directory.remove();
});

function createShim(failingPath: string, { skip }: TestContext): SyncShim {
  shim = createSyncShim(failingPath);
  return shim ?? skip('A FAILED FSYNC IS NOT TESTED HERE: it needs Linux and a C compiler');
}

/** Sends records to a server whose fsync fails after the first record, until it flushes. */
async function failFlush({ env, fail }: SyncShim): Promise<FailingServer> {
  const server = await serve(data, [], { env });
  let sent = 0;
  const post = async (count: number) => {
    sent += count;
    const response = await fetchResponse(`${server.internalUrl}/api/logs?source_name=postgres`, {
      method: 'POST',
      headers: { 'X-API-KEY': PROCESS_API_KEY, 'Content-Type': 'application/x-ndjson' },
      body: '{"project":"p0","message":"x"}\n'.repeat(count),
    });
    expect(response.status).toBe(200);
  };
  await post(1);
  const linesBefore = server.stderr().length;
  fail();
  await post(ROW_GROUP_ROWS);
  return { server, post, sent: () => sent, newLines: () => server.stderr().slice(linesBefore) };
}

interface FailingServer {
  readonly server: ServerProcess;
  readonly post: (count: number) => Promise<void>;
  /** How many records it has acknowledged. */
  readonly sent: () => number;
  /** The lines of the log since fsync fails. */
  readonly newLines: () => string;
}

/** Compares the stored records with those that were sent. */
async function reportRecords(sent: number, outcome: string): Promise<void> {
  const store = await openStore(testStoreOptions(data));
  await replaySpool(data, store, () => {});
  const { rows } = await store.query(savedQuery('select count(*) from postgres_logs', ['integer']), {});
  await store.close();
  const difference = sent - Number(rows[0]?.[0]);
  const [lost, duplicated] = [Math.max(0, difference), Math.max(0, -difference)];
  reportFault({ fault: 'failed fsync', runs: 1, outcome, lost, duplicated });
}

const listParts = () => readdirSync(join(data, 'parts'));

test('if fsync fails while a part is written, the server deletes the part and writes it again, and no record is lost', async context => {
  const shim = createShim('.duckdb.tmp.wal', context);
  const { server, post, sent } = await failFlush(shim);
  try {
    await server.untilError('flushing records of kind postgres failed');
    await expect.poll(listParts).toEqual([]);
    const query = await queryStatus(server);
    shim.repair();
    await expect
      .poll(async () => post(1).then(listParts), { timeout: 30_000, interval: 1_000 })
      .toContainEqual(expect.stringMatching(/^postgres-\d+\.duckdb$/));
    const { code } = await server.stop();
    await reportRecords(sent(), `part: queries get ${query}; with a working disk, the flush succeeds`);
    expect([query, code]).toEqual([200, 0]);
  } finally {
    await kill(server);
  }
});

test.for([
  ['while DuckDB creates a part', '.duckdb.tmp$', 'FATAL Error: .*'],
  ['after the manifest was replaced', '/data$', 'cannot replace manifest.json durably: .*'],
] as const)(
  'if fsync fails %s, the server exits with one line and exit code 1, and no record is lost',
  async ([_, failingPath, reason], context) => {
    const { server, sent, newLines } = await failFlush(createShim(failingPath, context));
    try {
      const { code } = await server.ended;
      expect(code).toBe(1);
      expect(onlyLine({ code, stderr: newLines(), stdout: '' })).toMatch(
        new RegExp(
          `^dendro: the store has failed; exiting. No acknowledged data is lost; restart the server. Reason: ${reason}$`,
        ),
      );
    } finally {
      await kill(server);
    }
    await reportRecords(sent(), 'store: exit code 1 with one line; a restart has every record');
  },
);

test('if fsync of the spool fails, senders get 503 until it succeeds again, and no record is lost', async context => {
  const { env, fail, repair } = createShim('.spool', context);
  const ledger = new Ledger();
  const server = await serve(data, [], { env });
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
    await auditAndReport({ fault: 'failed fsync', runs: 1, outcome }, data, ledger);
    expect([failing, query, [...retried]]).toEqual([[503], 200, [200]]);
  } finally {
    await kill(server);
  }
});
