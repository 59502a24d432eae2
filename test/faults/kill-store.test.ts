// Kills a process that flushes all the time, during compactions and during deletions of expired records.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { reportFault, sized } from '../support/fault-report.ts';
import { listParts } from '../support/parts.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';
import { startStoreProcess } from '../support/store-process.ts';

const KILLS = sized(6, 50);
/** About the time of 16 flushes and a compaction. */
const MAX_DELAY_MS = 1500;
/** As many records as store-process.mjs flushes at once. */
const FLUSH_RECORDS = 50;
/** As many records as the task `expire` of store-process.mjs keeps. */
const KEPT_RECORDS = 400;

let dataDirectory: string;
beforeEach(() => {
  dataDirectory = createDataDirectory();
});
afterEach(() => removeDataDirectory(dataDirectory));

type Query = (sql: string, columns: number) => Promise<number[]>;

/** Runs a task, kills it after a while, and opens the store again. `flushed` is the number of records that it has flushed. */
async function killTask(
  task: string,
  delayMs: number,
  check: (flushed: number, query: Query) => Promise<void>,
) {
  const child = startStoreProcess(task, dataDirectory);
  const output = await child.output;
  await sleep(delayMs);
  await child.kill();
  const store = await openStore(testStoreOptions(dataDirectory));
  try {
    const flushed = store.flushedUpTo('edge');
    expect(output).toEqual({ flushed: expect.any(Number) });
    expect(flushed).toBeGreaterThanOrEqual((output as { flushed: number }).flushed);
    await check(flushed, async (sql, columns) => {
      const { rows } = await store.query(savedQuery(sql, Array(columns).fill('integer')), {});
      return (rows[0] ?? []).map(Number);
    });
  } finally {
    await store.close();
  }
}

test('a store that is killed during compactions has every flushed record once', async () => {
  let [lost, duplicated, records] = [0, 0, 0];
  for (let kill = 0; kill < KILLS; kill++)
    await killTask('compact', (MAX_DELAY_MS * kill) / KILLS, async (flushed, query) => {
      const [count = 0, distinct = 0] = await query('select count(*), count(distinct id) from edge_logs', 2);
      lost += flushed - distinct;
      duplicated += count - distinct;
      records = flushed;
      const parts = listParts(dataDirectory, 'edge');
      expect(parts.some(part => part.records > FLUSH_RECORDS)).toBe(true); // compacted
      expect(readdirSync(join(dataDirectory, 'parts'))).toHaveLength(parts.length);
    });
  const outcome = `the next start deletes the unfinished part; ${records} flushed records audited`;
  reportFault({ fault: 'kill -9 during compaction', runs: KILLS, outcome, lost, duplicated });
});

test('a store that is killed while it removes expired records has every other record once', async () => {
  let [lost, duplicated, expired] = [0, 0, 0];
  for (let kill = 0; kill < KILLS; kill++)
    await killTask('expire', (MAX_DELAY_MS * kill) / KILLS, async (flushed, query) => {
      const [count = 0, distinct = 0, kept = 0] = await query(
        `select count(*), count(distinct id), count(distinct id) filter (epoch_us(timestamp) >= ${flushed - KEPT_RECORDS})
        from edge_logs`,
        3,
      );
      lost += KEPT_RECORDS - kept;
      duplicated += count - distinct;
      expired = flushed - distinct;
    });
  expect(expired).toBeGreaterThan(0);
  const outcome = `${expired} expired records are removed, all others are kept`;
  reportFault({ fault: 'kill -9 during retention', runs: KILLS, outcome, lost, duplicated });
});
