import { type DuckDBConnection, DuckDBInstance, type DuckDBPreparedStatement } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConnectionPool } from '../../src/store/duckdb/connection-pool.ts';
import { runSavedQuery } from '../../src/store/duckdb/saved-query.ts';
import type { QueryOptions } from '../../src/store/store.ts';
import { ReadWriteLock } from '../../src/system/read-write-lock.ts';
import { savedQuery } from '../support/store.ts';

// A query reads two databases, mem and file. A transaction takes its snapshot of each when it first reads it. A flush moves
// records from one to the other. A query with one snapshot from before a flush and one from after it would count records twice
// or miss them.
describe('a query during a flush', () => {
  let instance: DuckDBInstance;
  let writer: DuckDBConnection;
  let viewLock: ReadWriteLock;
  let pool: ConnectionPool;
  beforeEach(async () => {
    instance = await DuckDBInstance.create(':memory:');
    writer = await instance.connect();
    for (const database of ['mem', 'file']) {
      await writer.run(`attach ':memory:' as ${database}`);
      await writer.run(`create table ${database}.records as select 'in ${database}' as id`);
      await writer.run(`create table ${database}.snapshot_anchor (unused boolean)`);
    }
    viewLock = new ReadWriteLock();
    pool = await openPool(
      instance,
      'select 1 from mem.snapshot_anchor, file.snapshot_anchor where $nothing is null',
      viewLock,
    );
  });
  afterEach(async () => {
    await pool.close();
    writer.closeSync();
    instance.closeSync();
  });

  const flush = () =>
    viewLock.write(async () => {
      await writer.run('insert into file.records from mem.records');
      await writer.run('delete from mem.records');
    });
  const readIds = async (statement: DuckDBPreparedStatement) => {
    if (statement.parameterCount > 0) statement.bind({ nothing: null });
    return (await statement.runAndReadAll()).getRows().flat();
  };
  const RECORDS = '(from mem.records union all from file.records)';

  test.each([
    ['planned when it is prepared', `select id from ${RECORDS}`],
    ['planned when it is run', `select id from ${RECORDS} where $nothing is null`],
    [
      'with a parameter before all tables',
      `with given as (select $nothing is null as yes) select id from given, ${RECORDS} where yes`,
    ],
  ])('a query (%s) that started before a flush returns the rows from before it', async (_, sql) => {
    const query = (before = async () => {}) =>
      pool.run(async connection => {
        await before();
        return readIds(await connection.prepare(sql));
      });
    const results = [await query(), await query(flush), await query()].map(({ result }) => result);
    expect(results).toEqual([
      ['in mem', 'in file'],
      ['in mem', 'in file'],
      ['in file', 'in mem'],
    ]);
  });

  test('a query that starts while a flush holds the view lock waits until the lock is released', async () => {
    let finish = () => {};
    const flushing = viewLock.write(
      () =>
        new Promise<void>(resolve => {
          finish = resolve;
        }),
    );
    let isDone = false;
    const querying = pool
      .run(async connection => readIds(await connection.prepare(`select id from ${RECORDS}`)))
      .then(() => {
        isDone = true;
      });
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(isDone).toBe(false);
    finish();
    await Promise.all([flushing, querying]);
    expect(isDone).toBe(true);
  });
});

// How much memory DuckDB counts as used varies. In some rounds, too little is left for the rollback too.
test('a query succeeds after one whose rollback had too little memory', async () => {
  for (let round = 0; round < 20; round++) {
    const instance = await DuckDBInstance.create(':memory:', { temp_directory: '' });
    const writer = await instance.connect();
    const filler = await instance.connect();
    const pool = await openPool(instance, 'select 1 where $nothing is null');
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
  const pool = await openPool(instance, 'select 1 from records where $nothing is null');
  const run = (sql: string, options?: QueryOptions) =>
    pool.run(connection => runSavedQuery(connection, savedQuery(sql, ['text'], 10_000_000), {}), options);
  await expect(run('select text from records')).resolves.toMatchObject({
    result: { rows: { length: 300_000 } },
  });
  await expect(run("select if(id = 250_000, error('late'), text) from records")).rejects.toThrow(
    /failed after its first rows|late/, // DuckDB reports the error itself if it occurs before it returns the first rows
  );
  await expect(
    run('select text from records, range(30)', { signal: AbortSignal.timeout(100) }),
  ).rejects.toThrow('timeout');
  await pool.close();
  writer.closeSync();
  instance.closeSync();
});

function openPool(instance: DuckDBInstance, snapshotSql: string, viewLock = new ReadWriteLock()) {
  return ConnectionPool.open({
    connect: () => instance.connect(),
    queryConcurrency: 1,
    queryQueueLength: 1,
    queryTimeoutSeconds: 10,
    viewLock,
    snapshotSql,
  });
}
