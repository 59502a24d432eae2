// Opens the configured store. No other module outside duckdb/ and clickhouse/ imports from these directories. This one imports
// only types statically, so that opening one store does not load the client library of the other.
import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Damage } from '../domain/damage.ts';
import { OperatorError } from '../domain/errors.ts';
import { LOG_KINDS } from '../domain/log-columns.ts';
import { systemClock } from '../system/clock.ts';
import { checkAndRecordFormat } from '../system/data-directory.ts';
import { lockDirectory } from '../system/lock.ts';
import type { Outbox } from './clickhouse/outbox.ts';
import type { SchemaOptions } from './clickhouse/schema.ts';
import type { ClickHouseUrl } from './clickhouse-url.ts';
import type { InspectOptions, NamedPart } from './duckdb/part-file.ts';
import type { DuckDBStoreOptions } from './duckdb/store.ts';
import type { Store, StoreCallbacks, StoreContent, StoreName } from './store.ts';

export interface StoreOptions extends DuckDBStoreOptions {
  /** If given, records are stored in ClickHouse instead of in the data directory. */
  readonly clickhouse?: ClickHouseUrl | undefined;
  /** If a table of an earlier release cannot be read, convert the rest. */
  readonly acceptLoss?: boolean | undefined;
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
  return (await import('./clickhouse/schema.ts')).applySchema(clickhouse, retentionDays);
}

/** Opens the outbox of a data directory, and creates it if there is none. The caller must hold the lock of the data directory. */
export async function openClickHouseOutbox(dataDirectory: string): Promise<Outbox> {
  const { Outbox } = await import('./clickhouse/outbox.ts');
  return Outbox.open(join(resolve(dataDirectory), 'clickhouse'));
}

/** A data directory that no server has used yet may have no files of the store. */
export function hasStoreFiles(storeName: StoreName, dataDirectory: string): boolean {
  const names = storeName === 'duckdb' ? ['manifest.json', 'dendro.duckdb'] : ['clickhouse/progress.json'];
  return names.some(name => existsSync(join(dataDirectory, name)));
}

/**
 * Whether the files of the store are missing although a server has used the data directory with it: a server creates `spool/` after
 * them. It may have used the other store only. Throws OperatorError if only a part of the outbox is missing.
 */
async function isStoreMissing(storeName: StoreName, dataDirectory: string): Promise<boolean> {
  const exists = (name: string) => existsSync(join(dataDirectory, name));
  if (hasStoreFiles(storeName, dataDirectory) || !exists('spool')) return false;
  if (storeName === 'clickhouse') {
    if (exists('clickhouse'))
      throw new OperatorError(
        `${join(dataDirectory, 'clickhouse/progress.json')} is missing, although a server has used this data directory. Restore it from a backup. If there is none, delete clickhouse/; what ClickHouse has of the spool's records can then be stored twice`,
      );
    return !hasStoreFiles('duckdb', dataDirectory);
  }
  if ((await import('./duckdb/manifest.ts')).findPart(dataDirectory) !== undefined) return false;
  return !(await hasSentToClickHouse(dataDirectory));
}

/** Also true if the outbox cannot be read. */
async function hasSentToClickHouse(dataDirectory: string): Promise<boolean> {
  if (!hasStoreFiles('clickhouse', dataDirectory)) return false;
  const outbox = await readClickHouseOutbox(dataDirectory).catch(() => undefined);
  return outbox === undefined || LOG_KINDS.some(kind => outbox.durableUpTo(kind) > 0);
}

export interface StoreInspection extends StoreContent {
  /** Includes the reason for `error`. */
  readonly damages: readonly Damage[];
  /** The parts that were set aside earlier. */
  readonly setAside: readonly Damage[];
  /** The store cannot be opened. */
  readonly error?: unknown;
}

/**
 * Reads the store's files. With ClickHouse, these are the outbox. A data directory without them is empty, except if a server has used
 * it. Changes nothing. The caller must make sure that no other process uses the directory.
 */
export async function inspectStore(
  storeName: StoreName,
  { dataDirectory: directory, ...options }: InspectOptions,
): Promise<StoreInspection> {
  const dataDirectory = resolve(directory);
  const nothing = { records: new Map(), durableUpTo: () => 0, damages: [], setAside: [] };
  const report = (problem: string): Damage => ({
    file: storeName === 'duckdb' ? 'manifest.json' : 'clickhouse/',
    place: '',
    problem,
  });
  try {
    if (await isStoreMissing(storeName, dataDirectory))
      return {
        ...nothing,
        damages: [report('it does not exist, although a server has used this data directory')],
      };
    if (storeName === 'clickhouse')
      return hasStoreFiles(storeName, dataDirectory)
        ? { ...nothing, ...(await readClickHouseOutbox(dataDirectory)) }
        : nothing;
    (await import('./duckdb/convert/marker.ts')).refuseLostManifest(dataDirectory);
    return await (await import('./duckdb/part-file.ts')).inspectParts({ ...options, dataDirectory });
  } catch (error) {
    return { ...nothing, damages: [report((error as Error).message)], error };
  }
}

async function readClickHouseOutbox(dataDirectory: string): Promise<StoreContent> {
  const { Outbox } = await import('./clickhouse/outbox.ts');
  return (await Outbox.read(join(resolve(dataDirectory), 'clickhouse'))).content;
}

export function storeNameOf({ clickhouse }: StoreOptions): StoreName {
  return clickhouse === undefined ? 'duckdb' : 'clickhouse';
}

/** Locks the data directory until the store is closed. Throws an OperatorError if another process holds the lock. */
export async function openStore(options: StoreOptions, callbacks: StoreCallbacks = {}): Promise<Store> {
  const lock = await lockDirectory(options.dataDirectory);
  try {
    await checkAndRecordFormat(options.dataDirectory);
    const isMissing = await isStoreMissing(storeNameOf(options), options.dataDirectory);
    const store = await openInLockedDirectory(options, callbacks); // throws if there are parts without a manifest
    if (isMissing) callbacks.observe?.({ type: 'store_missing', store: store.name });
    return { ...store, close: () => store.close().finally(lock.release) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

/** Whether the directory has an embedded store of an earlier release, which `openStore` converts. */
export async function hasOldStore(dataDirectory: string): Promise<boolean> {
  return (await import('./duckdb/convert/marker.ts')).hasOldStore(dataDirectory);
}

/** The parts that the manifest of a data directory or a copy names. Throws an OperatorError if the manifest cannot be used. */
export async function listParts(dataDirectory: string): Promise<readonly NamedPart[]> {
  return (await import('./duckdb/part-file.ts')).listParts(dataDirectory);
}

async function openInLockedDirectory(options: StoreOptions, callbacks: StoreCallbacks): Promise<Store> {
  const { clickhouse } = options;
  if (clickhouse !== undefined) {
    const { openClickHouseStore } = await import('./clickhouse/store.ts');
    return openClickHouseStore({ ...options, clickhouse }, callbacks);
  }
  const { convertIfNeeded } = await import('./duckdb/convert/convert.ts');
  const { clock = systemClock } = options;
  await convertIfNeeded({ ...options, clock, observe: callbacks.observe ?? (() => {}) });
  const { openDuckDBStore } = await import('./duckdb/store.ts');
  const store = await openDuckDBStore(options, callbacks);
  try {
    await (await import('./duckdb/convert/marker.ts')).addMarker(options.dataDirectory);
    return store;
  } catch (error) {
    await store.close();
    throw error;
  }
}
