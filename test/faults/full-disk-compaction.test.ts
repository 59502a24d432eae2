// The disk becomes full during a compaction or a checkpoint, as if another program used the space that was free before.
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, type TestContext, test } from 'vitest';
import { startApp } from '../../src/app.ts';
import { OperatorError } from '../../src/domain/errors.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import type { Event } from '../../src/observe/event.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { API_KEY, fetchResponse, micros, testConfig, testStoreOptions } from '../support/app.ts';
import { reportFault } from '../support/fault-report.ts';
import { edgeRecord } from '../support/record.ts';
import { savedQuery } from '../support/store.ts';
import { mountSmallDisk, type SmallDisk } from './small-disk.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const START = micros('2026-10-01T12:00:00Z');
const NOW = micros('2026-11-14T13:00:00Z');

let disk: SmallDisk | undefined;
beforeEach(() => {
  disk = mountSmallDisk(240);
});
afterEach(() => disk?.remove());

function requireDisk({ skip }: TestContext): SmallDisk {
  return disk ?? skip('A FULL DISK IS NOT TESTED HERE: mounting a small file system needs Linux and root');
}

test.for([
  [0, 64 * KIB],
  [10, 0],
  [40, MIB],
  [80, 300 * KIB],
  [120, 0],
  [160, MIB],
  [200, 300 * KIB],
  [300, 64 * KIB],
])(
  'if the disk fills %i ms after the start of a compaction, with %i bytes left, no record is lost and a later compaction succeeds',
  { timeout: 60_000 },
  async ([afterMs = 0, leftBytes = 0], context) => {
    const { path, fill, free } = requireDisk(context);
    const invalidations: unknown[] = [];
    const open = () =>
      openStore(testStoreOptions(path), { storeInvalidated: error => invalidations.push(error) });
    let store = await open();
    for (let i = 0; i < 16; i++) {
      await applyRecords(store, i * 2_000, 2_000);
      await store.flush(['edge']);
    }
    const compaction = store.compact?.(NOW).catch(() => {}); // may fail; the next one succeeds
    await sleep(afterMs);
    fill(leftBytes);
    await compaction;
    if (invalidations.length > 0) store = await reopen(store, open);
    expect(await counts(store)).toEqual([32_000, 32_000]);
    free();
    store = await reopen(store, open); // otherwise the kind waits 10 minutes after a failed compaction
    await applyRecords(store, 32_000, 10);
    await store.flush(['edge']);
    while ((await store.compact?.(NOW)) || (await store.vacuum?.()));
    store = await reopen(store, open);
    const [count = 0, distinct = 0] = ((await counts(store)) ?? []).map(Number);
    reportFault({
      fault: 'full disk during compaction',
      runs: 1,
      outcome:
        invalidations.length > 0
          ? 'exit, and a restart has every record'
          : 'compaction waits, and succeeds with free space',
      lost: 32_010 - distinct,
      duplicated: count - distinct,
    });
    expect([count, distinct]).toEqual([32_010, 32_010]);
    expect(await partNames(store)).toEqual(['edge_compacted', 'edge_part']);
    await store.close();
  },
);

test('if the disk fills during a checkpoint, the program stops and the next start has every record', {
  timeout: 60_000,
}, async context => {
  const { path, fillAtOnce, free } = requireDisk(context);
  const events: Event[] = [];
  const app = await startApp(testConfig(path), event => events.push(event));
  let invalidation: unknown;
  app.storeInvalidated.catch(error => {
    invalidation = error;
  });
  let records = 0;
  for (let attempt = 1; attempt <= 6 && invalidation === undefined; attempt++) {
    await applyRecords(app.store, records, 40_000);
    records += 40_000;
    const flushing = app.store.flush(['edge']).catch(() => {});
    while (app.store.flushedUpTo('edge') < records) await sleep(1); // committed: the checkpoint starts
    await sleep(attempt * 10);
    fillAtOnce();
    await flushing;
    free();
  }
  expect(invalidation).toBeInstanceOf(OperatorError);
  expect((invalidation as Error).message).toMatch(
    /^DuckDB invalidated its file; exiting\. No acknowledged data is lost; restart the server\. Reason: .*invalidated/,
  );
  expect(events.filter(event => 'error' in event)).toEqual([]); // the exit prints the only line
  const request = { headers: { 'X-API-KEY': API_KEY } };
  for (const path of ['/health', '/health/ready', '/health/live']) {
    const health = await fetchResponse(`${app.publicUrl}${path}`, {});
    expect([health.status, JSON.parse(health.text).status]).toEqual([503, 'unavailable']);
  }
  const query = `${app.publicUrl}/api/endpoints/query/logs.all?project=p0`;
  expect((await fetchResponse(query, request)).status).toBe(503);
  const post = { ...request, method: 'POST', body: '{"project":"p0","message":"x"}' };
  expect((await fetchResponse(`${app.internalUrl}/api/logs?source_name=edge`, post)).status).toBe(503);
  await app.close();
  const store = await openStore(testStoreOptions(path));
  expect(await counts(store)).toEqual([records, records]);
  await applyRecords(store, records, 10);
  await store.flush(['edge']);
  const [count = 0, distinct = 0] = ((await counts(store)) ?? []).map(Number);
  reportFault({
    fault: 'full disk during a checkpoint',
    runs: 1,
    outcome: '503, then exit code 1 with one line; a restart has every record',
    lost: records + 10 - distinct,
    duplicated: count - distinct,
  });
  expect([count, distinct]).toEqual([records + 10, records + 10]);
  await store.close();
});

test('if one kind is too large for a compaction on a nearly full disk, the other kinds are compacted', async context => {
  const { path, fill } = requireDisk(context);
  const store = await openStore(testStoreOptions(path));
  try {
    for (let i = 0; i < 16; i++) {
      await applyRecords(store, i * 2_000, 2_000);
      const small = toLogLines('postgres', [{ ...edgeRecord({ at: START }), extracted: {} }]);
      await store.apply({ ...small, firstSequence: i });
      await store.flush(['edge', 'postgres']);
    }
    fill(68 * MIB); // 64 MiB are reserved
    await expect(store.compact?.(NOW)).rejects.toThrow('not enough disk space');
    expect(await store.compact?.(NOW)).toBe(true);
    expect(await store.compact?.(NOW)).toBe(false);
    const sql = 'select count(*) from duckdb_tables() where table_name like $pattern';
    const countTables = async (pattern: string) =>
      (await store.query(savedQuery(sql, ['integer']), { pattern: { type: 'text', value: pattern } })).rows;
    expect(await countTables('postgres_compacted%')).toEqual([[1]]);
    expect(await countTables('edge_compacted%')).toEqual([[0]]);
  } finally {
    await store.close();
  }
});

async function reopen(store: Store, open: () => Promise<Store>): Promise<Store> {
  await store.close();
  return open();
}

/** Random texts, so that they cannot be compressed. */
function applyRecords(store: Store, first: number, count: number): Promise<void> {
  const records = Array.from({ length: count }, (_, i) =>
    edgeRecord({
      id: `n${first + i}`,
      at: START + BigInt(first + i) * 1_000_000n,
      project: `p${i % 7}`,
      metadata: { text: Array.from({ length: 20 }, () => Math.random().toString(36)).join('') },
    }),
  );
  return store.apply({ ...toLogLines('edge', records), firstSequence: first });
}

async function counts(store: Store) {
  const sql = 'select count(*), count(distinct id) from edge_logs';
  return (await store.query(savedQuery(sql, ['integer', 'integer']), {})).rows[0];
}

async function partNames(store: Store) {
  const sql = `select distinct regexp_replace(table_name, '_\\d+$', '') from duckdb_tables()
    where database_name = 'logs' and table_name like 'edge%' order by 1`;
  return (await store.query(savedQuery(sql, ['text']), {})).rows.flat();
}
