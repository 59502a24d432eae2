// Opens files of earlier schema versions. The tests write them by renaming the tables of the current version back. Files that an
// earlier program wrote are tested in test/upgrade.
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { toLogLines } from '../../src/domain/log-line.ts';
import { inspectFile } from '../../src/store/duckdb/inspect-file.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/store.ts';
import { micros, testStoreOptions } from '../support/app.ts';
import { edgeRecord } from '../support/record.ts';
import { createDataDirectory, removeDataDirectory, savedQuery } from '../support/store.ts';

const START = micros('2026-10-01T12:00:00Z');
const NOW = micros('2026-11-14T13:00:00Z');
/** Compaction merges two parts only after nothing was flushed for this long. */
const IDLE_MS = 30_000;

let dataDirectory: string;
let store: Store;

const open = async () => {
  store = await openStore(testStoreOptions(dataDirectory));
};

beforeEach(async () => {
  dataDirectory = createDataDirectory();
  vi.useFakeTimers({ toFake: ['performance'] });
  await open();
});
afterEach(async () => {
  vi.useRealTimers();
  await store.close();
  removeDataDirectory(dataDirectory);
});

const flush = async (count: number, kind: LogKind = 'edge') => {
  const firstSequence = store.flushedUpTo(kind);
  const records = Array.from({ length: count }, (_, i) => {
    const n = firstSequence + i;
    return edgeRecord({ id: `n${n}`, at: START + BigInt(n) * 1_000_000n, project: `p${n % 7}` });
  });
  await store.apply({ ...toLogLines(kind, records), firstSequence });
  await store.flush([kind]);
};
const flushTimes = async (times: number, count: number) => {
  for (let i = 0; i < times; i++) await flush(count);
};
const compactWhenIdle = async () => {
  expect(await store.compact?.(NOW)).toBe(false);
  vi.advanceTimersByTime(IDLE_MS);
  return store.compact?.(NOW);
};
const query = async (sql: string, types: ('text' | 'integer')[]) =>
  (await store.query(savedQuery(sql, types), {})).rows;
/** The number of records, and of different ids. */
const counts = async () =>
  (await query('select count(*), count(distinct id) from edge_logs', ['integer', 'integer']))[0];
const tablesLike = async (pattern: string) => {
  const sql = `select table_name from duckdb_tables() where database_name = 'logs' and table_name like '${pattern}' order by 1`;
  return (await query(sql, ['text'])).map(([name]) => String(name));
};
const parts = async () => (await tablesLike('edge%')).map(name => name.replace(/\d+/, 'N'));

/** Closes the store, changes its file and opens it again. */
const change = async (...statements: string[]) => {
  await store.close();
  const instance = await DuckDBInstance.create(join(dataDirectory, 'dendro.duckdb'));
  const connection = await instance.connect();
  for (const statement of statements) await connection.run(statement);
  connection.closeSync();
  instance.closeSync();
  await open();
};

describe('opening a file', () => {
  const schemaVersion = () => query('select max(version) from logs.schema_version', ['integer']);

  test.each([
    ['rewriting', 'the current name'],
    ['compacting', 'an earlier name'],
    ['merging', 'the name of version 3'],
  ])('opening a file drops the temporary table edge_%s_2 (%s) of an interrupted compaction', async name => {
    await flushTimes(2, 10);
    await change(`create table edge_${name}_2 as from edge_logs`);
    expect(await counts()).toEqual([20, 20]);
    expect(await parts()).toEqual(['edge_part_N', 'edge_part_N']);
  });

  /** Statements that give the edge tables, their view and the flush progress the names of version 3. */
  const toVersion3 = async () => {
    const tables = await tablesLike('edge%');
    const old = tables.map(name => name.replace('compacted', 'merged').replace('part', 'sealed'));
    return [
      ...tables.map((name, index) => `alter table ${name} rename to ${old[index]}`),
      `create or replace view edge_logs as ${old.map(name => `from ${name}`).join(' union all ')}`,
      'alter table flushed_records rename to sealed_records',
      'update schema_version set version = 3',
    ];
  };

  test('opening a file of version 3 renames its tables and drops the temporary table of an interrupted compaction', async () => {
    await flushTimes(2, 80);
    await compactWhenIdle();
    await flushTimes(2, 10);
    await change(...(await toVersion3()), 'create table edge_merging_9 as from edge_logs');
    expect(await parts()).toEqual(['edge_compacted_N', 'edge_part_N', 'edge_part_N']);
    expect(await tablesLike('%_records')).toEqual(['flushed_records']);
    expect(await schemaVersion()).toEqual([[4]]);
    expect(await counts()).toEqual([180, 180]);
    expect(store.flushedUpTo('edge')).toBe(180);
    await flushTimes(1, 10);
    expect(await counts()).toEqual([190, 190]);
  });

  test('a file of version 3 is unchanged if its upgrade fails, and is upgraded when the cause is gone', async () => {
    await flush(10);
    const obstacle = 'create table edge_part_1 (nothing boolean)'; // so that edge_sealed_1 cannot be renamed
    await expect(change(...(await toVersion3()), obstacle)).rejects.toThrow(/already exists/);
    await change('drop table edge_part_1', 'from edge_sealed_1', 'from sealed_records');
    expect(await counts()).toEqual([10, 10]);
    expect(await parts()).toEqual(['edge_part_N']);
    expect(store.flushedUpTo('edge')).toBe(10);
  });

  test('a file of version 2 is unchanged if its upgrade fails half-way, and is upgraded when the cause is gone', async () => {
    await flush(10);
    await flush(1, 'auth');
    const version2 = ['auth', 'edge'].flatMap(kind => [
      `drop view ${kind}_logs`,
      `alter table ${kind}_part_${kind === 'auth' ? 5 : 1} rename to ${kind}_logs`,
    ]);
    const inTheWay = ['auth_sealed_2', 'edge_sealed_2']; // the first table is renamed, the second cannot be
    const obstacles = inTheWay.map(name => `create table ${name} (nothing boolean)`);
    await expect(change(...version2, ...obstacles, 'update schema_version set version = 2')).rejects.toThrow(
      /already exists/,
    );
    await change(...inTheWay.map(name => `drop table ${name}`));
    expect(await counts()).toEqual([10, 10]);
  });

  test('opening a file deletes the checksum of a part to which version 0.2.0 added a record, so that no damage is reported', async () => {
    await flush(10);
    await change("insert into edge_part_1 select * replace ('added' as id) from edge_part_1 limit 1");
    expect(await counts()).toEqual([11, 11]);
    await store.close();
    const { records, damages } = await inspectFile({
      dataDirectory,
      memoryLimit: '500MB',
      onProgress: () => {},
    });
    expect({ records, damages }).toEqual({ records: 11, damages: [] });
  });

  test('opening a file of version 2, which has one table for each kind, converts them to parts', async () => {
    await flushTimes(1, 10);
    await change(
      'drop view edge_logs',
      'alter table edge_part_1 rename to edge_logs',
      'alter table flushed_records rename to sealed_records',
      'update schema_version set version = 2',
    );
    expect(await counts()).toEqual([10, 10]);
    expect(await schemaVersion()).toEqual([[4]]);
    await flushTimes(2, 80);
    expect(await compactWhenIdle()).toBe(true);
    expect(await counts()).toEqual([170, 170]);
  });
});
