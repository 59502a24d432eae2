import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';
import { startStoreProcess } from '../support/store-process.ts';

const KILLS = 12;
/** About the time of 16 flushes and a compaction. */
const MAX_DELAY_MS = 1500;

let dataDirectory: string;
beforeEach(() => {
  dataDirectory = createDataDirectory();
});
afterEach(() => removeDataDirectory(dataDirectory));

test('a store that is killed during compactions has every flushed record once', async () => {
  for (let kill = 0; kill < KILLS; kill++) {
    const child = startStoreProcess('compact', dataDirectory);
    const output = await child.output;
    await sleep((MAX_DELAY_MS * kill) / KILLS);
    await child.kill();

    const store = await openStore(testStoreOptions(dataDirectory));
    const query = async (sql: string, columns: number) =>
      (await store.query(savedQuery(sql, Array(columns).fill('integer')), {})).rows[0];
    try {
      const flushed = store.flushedUpTo('edge');
      expect(output).toEqual({ flushed: expect.any(Number) });
      expect(flushed).toBeGreaterThanOrEqual((output as { flushed: number }).flushed);
      expect(await query('select count(*), count(distinct id) from edge_logs', 2)).toEqual([
        flushed,
        flushed,
      ]);
      const [compacted, temporary] =
        (await query(
          `select count(*) filter (table_name like 'edge_compacted%'), count(*) filter (table_name like 'edge_rewriting%')
          from duckdb_tables()`,
          2,
        )) ?? [];
      expect(compacted).toBeGreaterThan(0);
      expect(temporary).toBe(0);
    } finally {
      await store.close();
    }
  }
});
