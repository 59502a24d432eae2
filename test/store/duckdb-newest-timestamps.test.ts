import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { LOG_KINDS, type LogKind } from '../../src/domain/log-columns.ts';
import type { ConnectionPool } from '../../src/store/duckdb/connection-pool.ts';
import { type DuckDBConnection, DuckDBInstance } from '../../src/store/duckdb/driver.ts';
import { NewestTimestamps } from '../../src/store/duckdb/newest-timestamps.ts';

describe('while the newest timestamps are read again after a removal', () => {
  let instance: DuckDBInstance;
  let connection: DuckDBConnection;
  let newest: NewestTimestamps;
  beforeEach(async () => {
    instance = await DuckDBInstance.create(':memory:');
    connection = await instance.connect();
    await connection.run("attach ':memory:' as mem");
    // Only queries for one project, or for records in the future, use the pool.
    newest = new NewestTimestamps(undefined as unknown as ConnectionPool);
    for (const kind of LOG_KINDS) {
      await connection.run(`create table mem.${kind}_logs (timestamp timestamp)`);
      await add(kind, 10);
      await add(kind, 50);
    }
  });
  afterEach(() => {
    connection.closeSync();
    instance.closeSync();
  });

  const add = async (kind: LogKind, micros: number) => {
    await connection.run(`insert into mem.${kind}_logs values (make_timestamp(${micros}::bigint))`);
    await newest.update(connection, kind, `mem.${kind}_logs`);
  };
  const remove = (micros: number) =>
    Promise.all(
      LOG_KINDS.map(kind =>
        connection.run(`delete from mem.${kind}_logs where epoch_us(timestamp) = ${micros}`),
      ),
    );
  const find = (kind: LogKind) => newest.find(kind, 1000n);

  /** Starts a reload, and calls `work` after its query of the kind has run, before the reload gets the result. */
  const reloadAndRun = async (pausedKind: LogKind, work: () => Promise<void>) => {
    const slow = new Proxy(connection, {
      get: (target, name) =>
        name !== 'runAndReadAll'
          ? Reflect.get(target, name, target)
          : async (sql: string, values: Record<string, never>) => {
              const result = await target.runAndReadAll(sql, values);
              if (sql.includes(`mem.${pausedKind}_logs`)) await work();
              return result;
            },
    });
    await newest.reload(slow);
  };

  test('a record that is added meanwhile is the newest afterwards', async () => {
    await reloadAndRun('edge', () => add('edge', 60));
    expect(await find('edge')).toBe(60n);
  });

  test('a record that is added meanwhile is the newest afterwards, although a removed one was newer', async () => {
    await remove(50);
    await reloadAndRun('edge', () => add('edge', 40));
    expect(await find('edge')).toBe(40n);
    expect(await find('auth')).toBe(10n);
  });

  test('the newest timestamps of all kinds are known', async () => {
    const seen: (bigint | undefined)[] = [];
    for (const pausedKind of LOG_KINDS)
      await reloadAndRun(pausedKind, async () => {
        for (const kind of LOG_KINDS) seen.push(await find(kind));
      });
    expect(new Set(seen)).toEqual(new Set([50n]));
  });

  test('a kind without records has no newest timestamp afterwards', async () => {
    await remove(10);
    await remove(50);
    await newest.reload(connection);
    expect(await find('edge')).toBeUndefined();
  });
});
