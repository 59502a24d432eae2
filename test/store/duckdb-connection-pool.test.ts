import { DuckDBInstance } from '@duckdb/node-api';
import { expect, test } from 'vitest';
import { ConnectionPool } from '../../src/store/duckdb/connection-pool.ts';
import { runSavedQuery } from '../../src/store/duckdb/saved-query.ts';
import type { QueryOptions } from '../../src/store/store.ts';
import { savedQuery } from '../support/store.ts';

test('a query that fails after its first rows is an error, not a shorter result', async () => {
  const instance = await DuckDBInstance.create(':memory:');
  const writer = await instance.connect();
  await writer.run(
    "create table records as select i as id, repeat('x', 100) as text from range(300_000) as _(i)",
  );
  const limits = { queryConcurrency: 1, queryQueueLength: 1, queryTimeoutSeconds: 10 };
  const pool = new ConnectionPool({ connect: () => instance.connect(), ...limits });
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
