import { expect, test } from 'vitest';
import { ROW_GROUP_ROWS } from '../../src/store/duckdb/checksum.ts';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/config.ts';
import { sized, tally } from '../support/fault-report.ts';
import { createTempDirectory } from '../support/process.ts';
import { auditAndReport } from './audit.ts';
import { endUnderLoad } from './end-under-load.ts';
import { Ledger } from './load.ts';

const MIN_KILLS = sized(8, 50);
const MAX_KILLS = 100;
/** After `MIN_KILLS`, each server runs longer than the last one: a slow machine does not finish a flush in the first second. */
const LONGER_MS = 500;
/** The memtable is flushed one row group at a time, so this many records cause several flushes between the kills. */
const MIN_RECORDS = sized(2, 10) * ROW_GROUP_ROWS;
const STOPS = sized(3, 20);

/** How many records of the kind edge the killed servers have flushed. The others are in the spool only. */
async function countFlushed(path: string): Promise<number> {
  const store = await openStore(testStoreOptions(path));
  const flushed = store.flushedUpTo('edge');
  await store.close();
  return flushed;
}

test('after kill -9 at random moments every acknowledged record is stored once, and any other once or not at all', async () => {
  const directory = createTempDirectory();
  const ledger = new Ledger();
  let [kills, retriedBatches] = [0, 0];
  try {
    const isEnough = async () =>
      ledger.acknowledgedRecords >= MIN_RECORDS && (await countFlushed(directory.path)) >= ROW_GROUP_ROWS;
    while (kills < MIN_KILLS || (kills < MAX_KILLS && !(await isEnough()))) {
      const maxMs = 1_000 + Math.max(0, kills - MIN_KILLS) * LONGER_MS;
      retriedBatches += (await endUnderLoad(directory.path, ledger, { signal: 'SIGKILL', maxMs }))
        .retriedBatches;
      kills++;
    }
    const outcome = `every restart succeeds; ${ledger.acknowledgedRecords} acknowledged records audited`;
    const row = { fault: 'kill -9 during intake and flush', runs: kills, outcome };
    const flushed = await countFlushed(directory.path);
    await auditAndReport(row, directory.path, ledger);
    expect(retriedBatches).toBeGreaterThan(0);
    expect(flushed).toBeGreaterThanOrEqual(ROW_GROUP_ROWS);
  } finally {
    directory.remove();
  }
});

test('after SIGTERM under load the exit code is 0, and every acknowledged record is stored once', async () => {
  const directory = createTempDirectory();
  const ledger = new Ledger();
  const codes: (number | null)[] = [];
  try {
    while (codes.length < STOPS)
      codes.push((await endUnderLoad(directory.path, ledger, { signal: 'SIGTERM' })).code);
    const outcome = `exit code ${tally(codes)}; every restart succeeds`;
    await auditAndReport({ fault: 'SIGTERM under load', runs: STOPS, outcome }, directory.path, ledger);
    expect(codes.filter(code => code !== 0)).toEqual([]);
  } finally {
    directory.remove();
  }
});
