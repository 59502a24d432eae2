// Opens the configured store. No other module outside duckdb/ and clickhouse/ imports from these directories. This one imports
// only types statically, so that opening one store does not load the client library of the other.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Damage } from '../domain/damage.ts';
import { LOG_KINDS } from '../domain/log-columns.ts';
import { checkAndRecordFormat, STORE_FILE } from '../system/data-directory.ts';
import { lockDirectory } from '../system/directory-lock.ts';
import type { Outbox } from './clickhouse/outbox.ts';
import type { SchemaOptions } from './clickhouse/schema.ts';
import type { ClickHouseUrl } from './clickhouse-url.ts';
import type { InspectedStore, InspectOptions } from './duckdb/inspect-file.ts';
import type { DuckDBStoreOptions } from './duckdb/store.ts';
import type { Store, StoreCallbacks, StoreContent, StoreName } from './store.ts';

export interface StoreOptions extends DuckDBStoreOptions {
  /** If given, records are stored in ClickHouse instead of in the data directory. */
  readonly clickhouse?: ClickHouseUrl | undefined;
}

/** Returns the SQL that creates the tables of a ClickHouse store. */
export async function renderClickHouseSchema(options: SchemaOptions): Promise<string> {
  return (await import('./clickhouse/schema.ts')).renderSchema(options);
}

/** Applies the missing schema migrations and returns their versions. */
export async function applyClickHouseSchema(
  clickhouse: ClickHouseUrl,
  retentionDays: number,
): Promise<readonly number[]> {
  return (await import('./clickhouse/apply-schema.ts')).applySchema(clickhouse, retentionDays);
}

/** Opens the outbox of a data directory, and creates it if there is none. The caller must hold the lock of the data directory. */
export async function openClickHouseOutbox(dataDirectory: string): Promise<Outbox> {
  const { Outbox } = await import('./clickhouse/outbox.ts');
  return Outbox.open(join(resolve(dataDirectory), 'clickhouse'));
}

/**
 * Reads every record of the store's files in a copy of a data directory. With ClickHouse, these files are the outbox. In a copy
 * of the embedded store, repairs what a power cut left, as a start does. Throws if a file is damaged in another way.
 */
export async function readStoreCopy(
  storeName: StoreName,
  dataDirectory: string,
  memoryLimit: string,
): Promise<StoreContent> {
  return storeName === 'duckdb'
    ? (await import('./duckdb/read-copy.ts')).readCopy(dataDirectory, memoryLimit)
    : readClickHouseOutbox(dataDirectory);
}

async function readClickHouseOutbox(dataDirectory: string): Promise<StoreContent> {
  return (await import('./clickhouse/read-outbox.ts')).readOutbox(join(resolve(dataDirectory), 'clickhouse'));
}

/** A data directory that no server has used yet may have no files of the store. */
export function hasStoreFiles(storeName: StoreName, dataDirectory: string): boolean {
  return existsSync(join(dataDirectory, storeName === 'duckdb' ? STORE_FILE : 'clickhouse/progress.json'));
}

/**
 * Whether dendro.duckdb is missing although a server has used the data directory: a server creates `spool/` after this file. A
 * server that has sent records to ClickHouse may never have created dendro.duckdb.
 */
export async function isStoreFileMissing(storeName: StoreName, dataDirectory: string): Promise<boolean> {
  const isMissing = !hasStoreFiles('duckdb', dataDirectory) && existsSync(join(dataDirectory, 'spool'));
  return storeName === 'duckdb' && isMissing && !(await hasSentToClickHouse(dataDirectory));
}

/** Also true if the outbox cannot be read. */
async function hasSentToClickHouse(dataDirectory: string): Promise<boolean> {
  if (!hasStoreFiles('clickhouse', dataDirectory)) return false;
  const outbox = await readClickHouseOutbox(dataDirectory).catch(() => undefined);
  return outbox === undefined || LOG_KINDS.some(kind => outbox.durableUpTo(kind) > 0);
}

/**
 * Reads every record of the store's files and returns what is damaged. Changes nothing. The caller must hold the lock of the data
 * directory.
 */
export async function inspectStoreFiles(
  storeName: StoreName,
  options: InspectOptions,
): Promise<InspectedStore> {
  const { dataDirectory } = options;
  if (await isStoreFileMissing(storeName, dataDirectory)) {
    const problem = 'it does not exist, although a server has used this data directory';
    return { records: 0, damages: [{ file: STORE_FILE, place: '', problem }], durableUpTo: () => 0 };
  }
  if (!hasStoreFiles(storeName, dataDirectory)) return { records: 0, damages: [], durableUpTo: () => 0 };
  if (storeName === 'duckdb') return (await import('./duckdb/inspect-file.ts')).inspectFile(options);
  try {
    const { records, durableUpTo } = await readClickHouseOutbox(dataDirectory);
    return {
      records: [...records.values()].reduce((sum, count) => sum + count, 0),
      damages: [],
      durableUpTo,
    };
  } catch (error) {
    return {
      records: 0,
      damages: [{ file: 'clickhouse/', place: '', problem: (error as Error).message }],
      durableUpTo: () => 0,
    };
  }
}

export function storeNameOf({ clickhouse }: StoreOptions): StoreName {
  return clickhouse === undefined ? 'duckdb' : 'clickhouse';
}

/** Locks the data directory until the store is closed. Throws an OperatorError if another process holds the lock. */
export async function openStore(options: StoreOptions, callbacks: StoreCallbacks = {}): Promise<Store> {
  const lock = await lockDirectory(options.dataDirectory);
  try {
    await checkAndRecordFormat(options.dataDirectory);
    if (await isStoreFileMissing(storeNameOf(options), options.dataDirectory))
      callbacks.observe?.({ type: 'store_file_missing' });
    const store = await openInLockedDirectory(options, callbacks);
    return { ...store, close: () => store.close().finally(lock.release) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/**
 * Checks whether an embedded store could open its file. Throws the OperatorError that opening it would throw. Returns the damage
 * that opening it would repair. Only reads the file. The caller must make sure that no other process uses it.
 */
export async function checkStoreFile({
  clickhouse,
  dataDirectory,
}: StoreOptions): Promise<Damage | undefined> {
  if (clickhouse !== undefined) return undefined;
  return (await import('./duckdb/open-database.ts')).checkDatabaseFile(dataDirectory);
}

async function openInLockedDirectory(options: StoreOptions, callbacks: StoreCallbacks): Promise<Store> {
  const { clickhouse } = options;
  if (clickhouse !== undefined) {
    const { openClickHouseStore } = await import('./clickhouse/store.ts');
    return openClickHouseStore({ ...options, clickhouse }, callbacks);
  }
  const { openDuckDBStore } = await import('./duckdb/store.ts');
  return openDuckDBStore(options, callbacks);
}
