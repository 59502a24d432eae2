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
  const limits = { queryConcurrency: 1, queryQueueLength: 1, queryTimeoutSeconds: 60 };
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

test('queries that are short of memory run again, one at a time', async () => {
  const instance = await DuckDBInstance.create(':memory:');
  const limits = { queryConcurrency: 3, queryQueueLength: 0, queryTimeoutSeconds: 60 };
  const pool = new ConnectionPool({ connect: () => instance.connect(), ...limits });
  const message = 'Out of Memory Error: failed to allocate data of size 1.0 MiB (9.5 MiB/10.0 MiB used)';
  let [started, running] = [0, 0];
  let resolveAll = () => {};
  const allStarted = new Promise<void>(resolve => {
    resolveAll = resolve;
  });
  const run = (isAlwaysShort: boolean) =>
    pool.run(async ({ connection }) => {
      if (++started === 3) resolveAll();
      if (started <= 3) {
        await allStarted;
        throw new Error(message);
      }
      running++;
      await connection.run('select 1');
      const isAlone = running-- === 1;
      if (isAlwaysShort || !isAlone) throw new Error(message);
      return 'completed';
    });
  const [first, second, third] = await Promise.allSettled([run(false), run(false), run(true)]);
  expect(first).toMatchObject({ value: { result: 'completed' } });
  expect(second).toMatchObject({ value: { result: 'completed' } });
  expect(third).toMatchObject({ reason: { code: 'unavailable' } });
  await pool.close();
  instance.closeSync();
});

test('queries that are short of memory wait without a slot, and callers take turns among them', async () => {
  const instance = await DuckDBInstance.create(':memory:');
  const limits = { queryConcurrency: 2, queryQueueLength: 9, queryTimeoutSeconds: 60 };
  const pool = new ConnectionPool({ connect: () => instance.connect(), ...limits });
  const message = 'Out of Memory Error: failed to allocate data of size 1.0 MiB (9.5 MiB/10.0 MiB used)';
  const started: string[] = [];
  const failed = new Set<string>();
  let finish = () => {};
  /** Short of memory at its first run; the second one lasts until `finish` is called. */
  const runShort = (name: string, caller: string) =>
    pool.run(
      async () => {
        if (!failed.has(name)) {
          failed.add(name);
          throw new Error(message);
        }
        started.push(name);
        await new Promise<void>(resolve => {
          finish = resolve;
        });
      },
      { callers: { ids: new Set([caller]) } },
    );
  const short = [runShort('a1', 'a'), runShort('a2', 'a'), runShort('a3', 'a')];
  await expect.poll(() => started).toHaveLength(1);
  short.push(runShort('b1', 'b'));
  await expect.poll(() => failed.has('b1')).toBe(true);
  const small = await pool.run(async () => 'small', { callers: { ids: new Set(['c']) } });
  expect(small.result).toBe('small');
  await expect.poll(() => pool.queue.waiting).toBe(3);
  for (let count = 1; count <= 4; count++) {
    await expect.poll(() => started).toHaveLength(count);
    finish();
  }
  await Promise.all(short);
  expect(started.map(name => name[0]).join('')).toBe('abaa');
  await pool.close();
  instance.closeSync();
});

test('when a query that was short of memory has ended, queries of its caller run at the same time again', async () => {
  const instance = await DuckDBInstance.create(':memory:');
  const limits = { queryConcurrency: 3, queryQueueLength: 9, queryTimeoutSeconds: 60 };
  const pool = new ConnectionPool({ connect: () => instance.connect(), ...limits });
  const message = 'Out of Memory Error: failed to allocate data of size 1.0 MiB (9.5 MiB/10.0 MiB used)';
  const finish = new Map<string, () => void>();
  let isShort = true;
  const run = (name: string) =>
    pool.run(
      async () => {
        if (name === 'short' && isShort) {
          isShort = false;
          throw new Error(message);
        }
        await new Promise<void>(resolve => {
          finish.set(name, resolve);
        });
      },
      { callers: { ids: new Set(['a']) } },
    );
  const running = [run('short')];
  await expect.poll(() => finish.has('short')).toBe(true);
  running.push(run('during'));
  finish.get('short')?.();
  await expect.poll(() => finish.has('during')).toBe(true);
  running.push(run('later'));
  await expect.poll(() => finish.has('later')).toBe(true);
  finish.get('during')?.();
  finish.get('later')?.();
  await Promise.all(running);
  await pool.close();
  instance.closeSync();
});
