import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openStore } from '../../src/store/open-store.ts';
import { testStoreOptions } from '../support/app.ts';
import { makeDataFolder, removeDataFolder, savedQuery } from '../support/store.ts';
import { startStoreProcess } from '../support/store-process.ts';

const KILLS = 12;
/** A round of sixteen seals and a merge takes about as long. */
const LONGEST_MS = 1500;

let dataDirectory: string;
beforeEach(() => {
  dataDirectory = makeDataFolder();
});
afterEach(() => removeDataFolder(dataDirectory));

test('killed while it merges: every sealed record is there, once', async () => {
  for (let kill = 0; kill < KILLS; kill++) {
    const child = startStoreProcess('merge', dataDirectory);
    const said = await child.said;
    await sleep((LONGEST_MS * kill) / KILLS);
    await child.kill();

    const store = await openStore(testStoreOptions(dataDirectory));
    const ask = async (sql: string, columns: number) =>
      (await store.query(savedQuery(sql, Array(columns).fill('integer')), {})).rows[0];
    try {
      const sealed = store.flushedUpTo('edge');
      expect(said).toEqual({ sealed: expect.any(Number) });
      expect(sealed).toBeGreaterThanOrEqual((said as { sealed: number }).sealed);
      expect(await ask('select count(*), count(distinct id) from edge_logs', 2)).toEqual([sealed, sealed]);
      const [merged, unfinished] =
        (await ask(
          `select count(*) filter (table_name like 'edge_merged%'), count(*) filter (table_name like 'edge_merging%')
          from duckdb_tables()`,
          2,
        )) ?? [];
      expect(merged).toBeGreaterThan(0);
      expect(unfinished).toBe(0);
    } finally {
      await store.close();
    }
  }
});
