// A store of a test's own, embedded unless the run is on ClickHouse, on a folder that goes when the test is done.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { LogKind } from '../../src/domain/log-columns.ts';
import { type LogLines, toLogLines } from '../../src/domain/log-line.ts';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { openStore, type StoreOptions } from '../../src/store/open-store.ts';
import type { BoundValues, Cell, ColumnType, SavedQuery, Store } from '../../src/store/store.ts';
import { testStoreOptions } from './app.ts';
import { storeOverrides } from './clickhouse.ts';

export interface TestStore {
  readonly store: Store;
  readonly dataDirectory: string;
  /** The rows of a query all of whose columns are text, unless told otherwise. */
  rowsOf(
    sql: string,
    types?: readonly ColumnType[],
    values?: BoundValues,
  ): Promise<readonly (readonly Cell[])[]>;
  close(): Promise<void>;
}

export async function openTestStore(
  overrides: Partial<Omit<StoreOptions, 'dataDirectory'>> = {},
): Promise<TestStore> {
  const dataDirectory = makeDataFolder();
  const store = await openStore({
    ...testStoreOptions(dataDirectory),
    ...(await storeOverrides()),
    ...overrides,
  });
  return {
    store,
    dataDirectory,
    rowsOf: async (sql, types, values = {}) => (await store.query(savedQuery(sql, types), values)).rows,
    async close() {
      await store.close();
      removeDataFolder(dataDirectory);
    },
  };
}

export function makeDataFolder(): string {
  return mkdtempSync(join(tmpdir(), 'dendro-test-'));
}

export function removeDataFolder(folder: string): void {
  rmSync(folder, { recursive: true, force: true });
}

/** Column names do not matter to a store that runs a query; they are checked once, at start. */
export function savedQuery(sql: string, types: readonly ColumnType[] = [], maxRows = 1000): SavedQuery {
  return { sql, maxRows, columns: types.map((type, index) => ({ name: `column_${index}`, type })) };
}

/** Takes hours: long enough that whoever sees it end has seen it cancelled. */
export const ENDLESS = savedQuery(
  'select sum(a.range * b.range % 7) from range(10000000) a, range(10000000) b',
  ['number'],
);

export const QUICK = savedQuery('select 42', ['integer']);

export async function* batches(
  kind: LogKind,
  ...all: readonly (readonly LogRecord[])[]
): AsyncIterable<LogLines> {
  for (const records of all) yield toLogLines(kind, records);
}
