import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { LOG_KINDS } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { Spool } from '../../src/intake/spool.ts';
import { openStore } from '../../src/store/open-store.ts';
import { fetchResponse, NOW, testStoreOptions } from '../support/app.ts';
import { reportFault, tally } from '../support/fault-report.ts';
import {
  createTempDirectory,
  onlyLine,
  PROCESS_API_KEY,
  spawnDendro,
  startServer,
} from '../support/process.ts';
import { edgeRecord } from '../support/record.ts';
import { savedQuery } from '../support/store.ts';
import { auditAndReport } from './audit.ts';
import { Ledger } from './load.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const headers = { 'X-API-KEY': PROCESS_API_KEY };

let disk: SmallDisk | undefined;
beforeEach(() => {
  disk = mountSmallDisk(160);
});
afterEach(() => disk?.remove());

function requireDisk({ skip }: TestContext): SmallDisk {
  if (disk !== undefined) return disk;
  const note = 'A FULL DISK IS NOT TESTED HERE: mounting a small file system needs Linux and root';
  console.error(note);
  return skip(note);
}

test('on a full disk senders get 503 and queries succeed; when space is free again, no record is lost', {
  timeout: 120_000,
}, async context => {
  const { path, fill, free, freeBytes } = requireDisk(context);
  const ledger = new Ledger();
  let server = await startServer(['--data', path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
  try {
    const post = (records: number, padding = 0) =>
      ledger.send(
        server.internalUrl,
        ledger.createBatch({ kinds: LOG_KINDS, records: [records, records], padding }),
      );
    const query = async () => {
      const response = await fetchResponse(`${server.url}/api/endpoints/query/logs.all?project=p0`, {
        headers,
      });
      return [response.status, response.rows.length > 0];
    };
    const fillCompletely = async () => {
      do {
        fill(0);
        await sleep(1_000); // an apply in progress frees its staging file at the end
      } while (freeBytes() > 0);
    };
    for (let i = 0; i < 20; i++) expect(await post(20)).toBe(200);
    await expect.poll(query).toEqual([200, true]);

    fill(6 * MIB);
    const statuses: (number | undefined)[] = [];
    for (let i = 0; i < 40 && !statuses.includes(503); i++) statuses.push(await post(200, 4 * KIB));
    expect(statuses.at(-1)).toBe(503);
    expect(new Set(statuses)).toEqual(new Set([200, 503]));

    await fillCompletely();
    for (let i = 0; i < 10; i++) {
      const { status, headers, error } = await fetchResponse(
        `${server.internalUrl}/api/logs?source_name=edge`,
        {
          method: 'POST',
          headers: { 'X-API-KEY': PROCESS_API_KEY },
          body: `{"project":"p","message":"${'x'.repeat(9_000)}"}`,
        },
      );
      expect([status, error.code, headers.get('retry-after')]).toEqual([503, 'unavailable', '5']);
      expect(error.message).toMatch(/the disk is full; no record of this request was stored/);
      expect(await query()).toEqual([200, true]);
      await sleep(200);
    }
    expect((await fetchResponse(`${server.url}/health`, {})).status).toBe(200);

    free();
    for (const batch of ledger.batches.filter(each => !each.acknowledged))
      expect(await ledger.send(server.internalUrl, batch)).toBe(200);
    for (let i = 0; i < 20; i++) expect(await post(20)).toBe(200);
    await expect.poll(() => queuedBytes(server.internalUrl), { timeout: 20_000 }).toBe(0);

    // After a kill on a full disk, the server starts, serves queries, and applies the rest of the spool when space is free again.
    expect(await post(50, 4 * KIB)).toBe(200);
    await fillCompletely();
    expect(await post(50, 4 * KIB)).toBe(503);
    server.signal('SIGKILL');
    await server.ended;
    server = await startServer(['--data', path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
    await fillCompletely(); // the start deletes a staging file
    expect(await post(50, 4 * KIB)).toBe(503);
    expect(
      (await fetchResponse(`${server.url}/api/endpoints/query/logs.all?project=p0`, { headers })).status,
    ).toBe(200);
    free();
    await expect.poll(() => queuedBytes(server.internalUrl), { timeout: 20_000 }).toBe(0);
    expect(await query()).toEqual([200, true]);
    expect(await post(20)).toBe(200);
    await server.stop();
    const outcome = `senders get ${ledger.refusals}, queries 200; with free space, retries get 200`;
    await auditAndReport({ fault: 'full disk during intake', runs: 2, outcome }, path, ledger);
  } finally {
    server.signal('SIGKILL');
    await server.ended;
  }
});

test.for([0, 64 * KIB, 300 * KIB, MIB, 20 * MIB, 66 * MIB])(
  'a disk with %i bytes free during a flush and a deletion loses no record',
  async (leftBytes, context) => {
    const { path, fill, free } = requireDisk(context);
    const failures: unknown[] = [];
    const store = await openStore(testStoreOptions(path), {
      observe: event => event.type === 'flush_failed' && failures.push(event.error),
    });
    const count = async () =>
      (await store.query(savedQuery('select count(*) from edge_logs', ['integer']), {})).rows[0]?.[0];
    const applyRecords = (first: number, records: number) => {
      const created = Array.from({ length: records }, (_, i) =>
        edgeRecord({ id: `${first + i}`, at: NOW, metadata: { text: Math.random().toString(36).repeat(4) } }),
      );
      return store.apply({ ...toLogLines('edge', created), firstSequence: first });
    };
    try {
      await applyRecords(0, 1_000);
      fill(leftBytes);
      await store.flush(['edge']).catch(error => failures.push(error));
      await store
        .maintain({ expire: { expiredBefore: 1n, rewriteBefore: 1n } })
        .catch(error => failures.push(error));
      expect(await count()).toBe(1_000);
      free();
      await sleep(failures.length > 0 ? 5_100 : 0);
      await applyRecords(1_000, 500);
      await store.flush(['edge']);
      expect(await count()).toBe(1_500);
      expect(store.flushedUpTo('edge')).toBe(1_500);
    } finally {
      await store.close();
    }
    const again = await openStore(testStoreOptions(path));
    try {
      const { rows } = await again.query(
        savedQuery('select count(*), count(distinct id) from edge_logs', ['integer', 'integer']),
        {},
      );
      const [count = 0, distinct = 0] = (rows[0] ?? []).map(Number);
      reportFault({
        fault: 'full disk during flush and retention',
        runs: 1,
        outcome: failures.length > 0 ? 'they wait, and succeed with free space' : 'the disk did not fill up',
        lost: 1_500 - distinct,
        duplicated: count - distinct,
      });
      expect(rows).toEqual([[1_500, 1_500]]);
    } finally {
      await again.close();
    }
  },
);

test('if the disk of a backup fills while it is written, the previous backup stays, and the server keeps serving', async context => {
  const { path, fill, free } = requireDisk(context);
  const data = createTempDirectory();
  const copy = join(path, 'copy');
  const ledger = new Ledger();
  const server = await startServer(['--data', data.path], { env: { DENDRO_API_KEY: PROCESS_API_KEY } });
  try {
    const args = ['token', 'create', '--name', 'backup', '--scope', 'admin', '--data', data.path];
    const token = (await spawnDendro(args)).stdout.trimEnd();
    const post = async () => {
      const batch = ledger.createBatch({ kinds: LOG_KINDS, records: [500, 500], padding: 4 * KIB });
      expect(await ledger.send(server.internalUrl, batch)).toBe(200);
    };
    const backup = () => spawnDendro(['backup', copy, '--url', server.internalUrl, '--token', token]);
    await post();
    expect((await backup()).code).toBe(0);
    const report = readFileSync(join(copy, 'backup.json'), 'utf8');
    for (let i = 0; i < 5; i++) await post();
    for (const leftBytes of [0, 64 * KIB, 3 * MIB]) {
      fill(leftBytes);
      const failed = await backup();
      expect([failed.code, failed.stdout]).toEqual([1, '']);
      expect(onlyLine(failed)).toMatch(/^dendro: .*no space left/i);
      expect(readFileSync(join(copy, 'backup.json'), 'utf8')).toBe(report);
      expect(readdirSync(path).filter(name => !name.startsWith('filler'))).toEqual(['copy']);
      await post();
      free();
    }
    const { code, stderr } = await backup();
    expect([code, stderr]).toEqual([0, '']);
    await server.stop();
    const outcome = 'one line, exit code 1; with free space, exit code 0';
    await auditAndReport({ fault: 'full disk during a command', runs: 3, outcome }, copy, ledger);
  } finally {
    server.signal('SIGKILL');
    await server.ended;
    data.remove();
  }
});

test('a store that was closed opens on a full disk and serves queries', async context => {
  const { path, fill, freeBytes } = requireDisk(context);
  const first = await openStore(testStoreOptions(path));
  await first.apply({ ...toLogLines('edge', [edgeRecord({ at: NOW })]), firstSequence: 0 });
  await first.flush(['edge']);
  await first.close();
  fill(0);
  expect(freeBytes()).toBe(0);
  const store = await openStore(testStoreOptions(path));
  const { rows } = await store.query(savedQuery('select count(*) from edge_logs', ['integer']), {});
  expect(rows).toEqual([[1]]);
  await store.close();
});

test('a server starts on a disk without free inodes and serves queries', async context => {
  const { path, useAllInodes } = requireDisk(context);
  const env = { DENDRO_API_KEY: PROCESS_API_KEY };
  const first = await startServer(['--data', path], { env });
  const body = '{"project":"p0","message":"m"}';
  const { status } = await fetchResponse(`${first.internalUrl}/api/logs?source_name=edge`, {
    method: 'POST',
    headers,
    body,
  });
  expect(status).toBe(200);
  expect((await first.stop()).code).toBe(0);
  useAllInodes();
  const server = await startServer(['--data', path], { env });
  try {
    const url = `${server.url}/api/endpoints/query/logs.all?project=p0`;
    await expect.poll(async () => (await fetchResponse(url, { headers })).rows).toHaveLength(1);
  } finally {
    await server.stop();
  }
});

test('spool segments can be deleted on a full disk', async context => {
  const { path, fill, freeBytes } = requireDisk(context);
  const directory = join(path, 'spool');
  const spool = await Spool.open({ directory, durableUpTo: () => 0, observe: () => {} });
  const append = { kind: 'edge', count: 1, lines: Buffer.alloc(5 * MIB, 'x') } as const;
  for (let i = 0; i < 8; i++) await spool.append([append]);
  while (spool.unappliedBytes > 0) (await spool.readUnapplied(100 * MIB)).confirm();
  fill(0);
  expect(freeBytes()).toBe(0);
  await spool.deleteFlushed(() => 8);
  expect(freeBytes()).toBeGreaterThan(5 * MIB);
  await spool.close();
});

test('a command on a full disk fails with one line, changes nothing, and succeeds with free space', async context => {
  const { path, fill, free } = requireDisk(context);
  const input = '{"project":"p","message":"m","id":"a"}\n';
  const commands = [
    ['token', 'create', '--name', 'b', '--scope', 'query', '--data', path],
    ['ingest', '-', '--source', 'edge', '--data', path],
    ['backup', join(path, 'backup'), '--data', path],
  ];
  const create = ['token', 'create', '--name', 'a', '--scope', 'query', '--data', path];
  expect((await spawnDendro(create)).code).toBe(0);
  expect((await spawnDendro(['query', 'logs.all', '--project', 'p', '--data', path])).code).toBe(0);
  fill(0);
  const failed = [];
  for (const command of commands) failed.push(await spawnDendro(command, { input }));
  const list = await spawnDendro(['token', 'list', '--data', path]);
  expect(list.stdout).toMatch(/^a /m);
  free();
  const repeated = [];
  for (const command of commands) repeated.push(await spawnDendro(command, { input }));
  const { stdout } = await spawnDendro(['query', 'logs.all', '--project', 'p', '--json', '--data', path]);
  const ids = (JSON.parse(stdout) as { result: { id: string }[] }).result.map(({ id }) => id);
  reportFault({
    fault: 'full disk during a command',
    runs: commands.length,
    outcome: `one line, exit code ${tally(failed.map(({ code }) => code))}; with free space, exit code ${tally(repeated.map(({ code }) => code))}`,
    lost: ids.includes('a') ? 0 : 1,
    duplicated: Math.max(0, ids.length - 1),
  });
  for (const outcome of failed) expect(onlyLine(outcome)).toMatch(/no space|disk/i);
  expect(failed.map(({ code }) => code)).toEqual([1, 1, 1]);
  expect(repeated).toMatchObject([{ code: 0 }, { code: 0 }, { code: 0 }]);
});

async function queuedBytes(internalUrl: string): Promise<number> {
  const { text } = await fetchResponse(`${internalUrl}/metrics`, { headers });
  return Number(/^dendro_intake_queue_bytes (.*)$/m.exec(text)?.[1]);
}
