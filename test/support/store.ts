// Opens a store for one test in a temporary directory: the embedded one, or ClickHouse in the project `clickhouse`.
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
  /** Returns the rows of a query. Columns are text unless `types` says otherwise. */
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
  const dataDirectory = createDataDirectory();
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
      removeDataDirectory(dataDirectory);
    },
  };
}

export function createDataDirectory(): string {
  return mkdtempSync(join(tmpdir(), 'dendro-test-'));
}

export function removeDataDirectory(dataDirectory: string): void {
  rmSync(dataDirectory, { recursive: true, force: true });
}

/** Column names do not matter when a query runs: a store checks them only at startup. */
export function savedQuery(sql: string, types: readonly ColumnType[] = [], maxRows = 1000): SavedQuery {
  return { sql, maxRows, columns: types.map((type, index) => ({ name: `column_${index}`, type })) };
}

/** Would run for hours: if it ends in a test, it was cancelled. */
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
