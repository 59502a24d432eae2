import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import { type DuckDBConnection, DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { isDataError } from '../../src/store/duckdb/errors.ts';
import { addRunLong, type StoreConnection } from '../../src/store/duckdb/run-long.ts';

let instance: DuckDBInstance | undefined;
afterEach(() => instance?.closeSync());

async function open(threads: number): Promise<{ writer: StoreConnection; other: DuckDBConnection }> {
  instance = await DuckDBInstance.create(':memory:', { threads: String(threads) });
  const writer = addRunLong(await instance.connect(), threads);
  await writer.run('create table numbers (number integer)');
  return { writer, other: await instance.connect() };
}

const INSERT = 'insert into numbers select unnest(range($count))';
const count = async (connection: DuckDBConnection) =>
  (await connection.runAndReadAll('select count(*) from numbers')).getRows();

describe.each([1, 2])('with %i threads', threads => {
  test('runLong executes a statement and returns the number of changed rows', async () => {
    const { writer } = await open(threads);
    expect((await writer.runLong(INSERT, { count: 100_000 })).rowsChanged).toBe(100_000);
    expect(await count(writer)).toEqual([[100_000n]]);
  });

  test.each([
    [
      'in a row',
      `insert into numbers select case when i = $count then 'x' else i::text end from range(5000) r(i)`,
    ],
    ['of a function', `insert into numbers select error('it fails') from range($count)`],
    ['before the start', 'insert into numbers select * from read_csv($count::text)'],
  ])('runLong throws the same error as run: %s', async (_, sql) => {
    const { writer } = await open(threads);
    const failure = (failing: Promise<unknown>) => failing.then(String, (error: Error) => error.message);
    const expected = await failure(writer.run(sql, { count: 4000 }));
    expect(expected).toMatch(/^(Conversion|Invalid Input|IO) Error: /);
    expect(await failure(writer.runLong(sql, { count: 4000 }))).toBe(expected);
    expect(await count(writer)).toEqual([[0n]]);
  });
});

test('the error of a statement that was cancelled is not an error about its data', () => {
  const message = 'Invalid Input Error: Attempting to execute an unsuccessful or closed pending query result';
  expect(isDataError(new Error(message))).toBe(false);
});

test("runLong finishes while a query occupies DuckDB's threads", async () => {
  const { writer, other } = await open(2);
  await other.run('create table large as select i from range(1000000) r(i)'); // several row groups, one for each thread
  const query = other.runAndReadAll('select max(hash(i, j)) from large, range(1000000) r(j)');
  await sleep(50);
  try {
    expect((await writer.runLong(INSERT, { count: 1_000 })).rowsChanged).toBe(1_000);
  } finally {
    other.interrupt();
    await expect(query).rejects.toThrow(/interrupt/i);
  }
});
