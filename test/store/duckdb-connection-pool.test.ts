import { type DuckDBConnection, DuckDBInstance } from '@duckdb/node-api';
import { expect, test } from 'vitest';
import { ConnectionPool } from '../../src/store/duckdb/connection-pool.ts';
import { runSavedQuery } from '../../src/store/duckdb/saved-query.ts';
import type { QueryOptions } from '../../src/store/store.ts';
import { savedQuery } from '../support/store.ts';

// How much memory DuckDB counts as used varies, so there are several rounds.
test('a query succeeds after one that had too little memory', async () => {
  for (let round = 0; round < 5; round++) {
    const instance = await DuckDBInstance.create(':memory:', { temp_directory: '' });
    const writer = await instance.connect();
    const filler = await instance.connect();
    const pool = openPool(instance);
    const query = (before = async () => {}) =>
      pool.run(async connection => {
        const statement = await connection.prepare('select list(id) from range(10_000) as _(id)');
        await before();
        return statement.run();
      });
    await filler.run('create temp table filler as from range(1_000_000)');
    await expect(query(() => limitToUsedMemory(writer))).rejects.toThrow('short of memory');
    await expect.poll(() => pool.queue.running).toBe(0);
    filler.closeSync(); // frees its temporary table
    await writer.run("set global memory_limit = '1 GB'");
    await expect(query()).resolves.toBeDefined();
    await pool.close();
    writer.closeSync();
    instance.closeSync();
  }
});

async function limitToUsedMemory(connection: DuckDBConnection): Promise<void> {
  const reader = await connection.runAndReadAll(
    'select sum(memory_usage_bytes)::double from duckdb_memory()',
  );
  const used = Number(reader.getRows()[0]?.[0]);
  // DuckDB rejects a limit below what it counts as used, which can be more by some kilobytes.
  for (let limit = used; ; limit += 1000)
    try {
      await connection.run(`set global memory_limit = '${limit} bytes'`);
      return;
    } catch (error) {
      if (limit > used + 1_000_000) throw error;
    }
}

test('a query that fails after its first rows is an error, not a shorter result', async () => {
  const instance = await DuckDBInstance.create(':memory:');
  const writer = await instance.connect();
  await writer.run(
    "create table records as select i as id, repeat('x', 100) as text from range(300_000) as _(i)",
  );
  const pool = openPool(instance);
  const run = (sql: string, options?: QueryOptions) =>
    pool.run(connection => runSavedQuery(connection, savedQuery(sql, ['text'], 10_000_000), {}), options);
  await expect(run('select text from records')).resolves.toMatchObject({
    result: { rows: { length: 300_000 } },
  });
  await expect(run("select if(id = 250_000, error('late'), text) from records")).rejects.toThrow('late');
  await expect(
    run('select text from records, range(30)', { signal: AbortSignal.timeout(100) }),
  ).rejects.toThrow('timeout');
  await pool.close();
  writer.closeSync();
  instance.closeSync();
});

function openPool(instance: DuckDBInstance) {
  return new ConnectionPool({
    connect: () => instance.connect(),
    queryConcurrency: 1,
    queryQueueLength: 1,
    queryTimeoutSeconds: 10,
  });
}
