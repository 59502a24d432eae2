import { type DuckDBConnection, DuckDBInstance, type DuckDBPreparedStatement } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ConnectionPool } from '../../src/store/duckdb/connection-pool.ts';
import { ReadWriteLock } from '../../src/system/read-write-lock.ts';

// What a query reads lies in two databases, each of which shows what it held when the query first looked at it. A swap moves
// records from one to the other. A query that looked at one before it and at the other after it counts them twice, or never.
describe('a query and a swap', () => {
  let instance: DuckDBInstance;
  let writer: DuckDBConnection;
  let gate: ReadWriteLock;
  let readers: ConnectionPool;
  beforeEach(async () => {
    instance = await DuckDBInstance.create(':memory:');
    writer = await instance.connect();
    for (const database of ['hot', 'file']) {
      await writer.run(`attach ':memory:' as ${database}`);
      await writer.run(`create table ${database}.records as select 'in ${database}' as id`);
      await writer.run(`create table ${database}.moment (nothing boolean)`);
    }
    gate = new ReadWriteLock();
    readers = await ConnectionPool.open([await instance.connect()], {
      queryQueueLength: 1,
      queryTimeoutSeconds: 10,
      viewLock: gate,
      snapshotSql: 'select 1 from hot.moment, file.moment where $nothing is null',
    });
  });
  afterEach(async () => {
    await readers.close();
    writer.closeSync();
    instance.closeSync();
  });

  const move = () =>
    gate.write(async () => {
      await writer.run('insert into file.records from hot.records');
      await writer.run('delete from hot.records');
    });
  const read = async (statement: DuckDBPreparedStatement) => {
    if (statement.parameterCount > 0) statement.bind({ nothing: null });
    return (await statement.runAndReadAll()).getRows().flat();
  };
  const RECORDS = '(from hot.records union all from file.records)';

  test.each([
    ['planned when it is prepared', `select id from ${RECORDS}`],
    ['planned when it is run', `select id from ${RECORDS} where $nothing is null`],
    [
      'whose parameter comes before all that it reads',
      `with given as (select $nothing is null as yes) select id from given, ${RECORDS} where yes`,
    ],
  ])('one that has begun answers for the time before: %s', async (_, sql) => {
    const ask = (before = async () => {}) =>
      readers.run(async reader => {
        await before();
        return read(await reader.prepare(sql));
      });
    const answers = [await ask(), await ask(move), await ask()].map(({ result }) => result);
    expect(answers).toEqual([
      ['in hot', 'in file'],
      ['in hot', 'in file'],
      ['in file', 'in hot'],
    ]);
  });

  test('one that comes while a swap is under way waits for its end', async () => {
    let end = () => {};
    const swapping = gate.write(
      () =>
        new Promise<void>(resolve => {
          end = resolve;
        }),
    );
    let isAnswered = false;
    const answering = readers
      .run(async reader => read(await reader.prepare(`select id from ${RECORDS}`)))
      .then(() => {
        isAnswered = true;
      });
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(isAnswered).toBe(false);
    end();
    await Promise.all([swapping, answering]);
    expect(isAnswered).toBe(true);
  });
});
