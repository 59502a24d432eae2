import { type DuckDBConnection, DuckDBInstance, type DuckDBPreparedStatement } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ReaderPool } from '../../src/store/duckdb/reader-pool.ts';
import { SwapGate } from '../../src/store/duckdb/swap-gate.ts';

// What a query reads lies in two databases, each of which shows what it held when the query first looked at it. A swap moves
// records from one to the other. A query that looked at one before it and at the other after it counts them twice, or never.
describe('a query into which a swap falls', () => {
  let instance: DuckDBInstance;
  let writer: DuckDBConnection;
  let gate: SwapGate;
  let readers: ReaderPool;
  beforeEach(async () => {
    instance = await DuckDBInstance.create(':memory:');
    writer = await instance.connect();
    for (const database of ['hot', 'file']) {
      await writer.run(`attach ':memory:' as ${database}`);
      await writer.run(`create table ${database}.records as select 'in ${database}' as id`);
    }
    gate = new SwapGate();
    readers = await ReaderPool.open([await instance.connect()], { queueLength: 1, timeoutSeconds: 10 }, gate);
  });
  afterEach(async () => {
    await readers.close();
    writer.closeSync();
    instance.closeSync();
  });

  const read = async (statement: DuckDBPreparedStatement) => {
    statement.bind({ nothing: null });
    return (await statement.runAndReadAll()).getRows().flat();
  };
  const move = () =>
    gate.swap(async () => {
      await writer.run('insert into file.records from hot.records');
      await writer.run('delete from hot.records');
    });
  const SQL = 'select id from (from hot.records union all from file.records) where $nothing is null';
  const ask = (work: (statement: DuckDBPreparedStatement) => Promise<unknown[]>) =>
    readers.run(reader => reader.run(SQL, work));

  test('between its two databases is run again, and answers for the time after', async () => {
    const first = await ask(read);
    expect(first.result).toEqual(['in hot', 'in file']);
    const answers: unknown[][] = [];
    const { result } = await readers.run(async reader => {
      const counted = await reader.connection.runAndReadAll('select count(*) from hot.records'); // looks at one of the two
      expect(Number(counted.value(0, 0))).toBe(1);
      return reader.run(SQL, async statement => {
        if (answers.length === 0) await move();
        answers.push(await read(statement));
        return answers.at(-1) ?? [];
      });
    });
    expect(answers[0]).toHaveLength(3);
    expect(result).toEqual(['in file', 'in hot']);
    expect(answers).toHaveLength(2);
  });

  test('is run once where no swap falls into it', async () => {
    let runs = 0;
    const count = (statement: DuckDBPreparedStatement) => {
      runs++;
      return read(statement);
    };
    await ask(count);
    await move();
    expect((await ask(count)).result).toEqual(['in file', 'in hot']);
    expect(runs).toBe(2);
  });

  test('waits for one that is under way', async () => {
    await ask(read);
    let end = () => {};
    const swapping = gate.swap(
      () =>
        new Promise<void>(resolve => {
          end = resolve;
        }),
    );
    let isAnswered = false;
    const answering = ask(read).then(() => {
      isAnswered = true;
    });
    await new Promise(resolve => setTimeout(resolve, 50));
    expect(isAnswered).toBe(false);
    end();
    await Promise.all([swapping, answering]);
    expect(isAnswered).toBe(true);
  });
});
