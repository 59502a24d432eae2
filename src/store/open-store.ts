// From a store's options to the store. The library of a store that is not used is never loaded.
import { join, resolve } from 'node:path';
import { lockDirectory } from '../system/directory-lock.ts';
import type { Outbox } from './clickhouse/outbox.ts';
import type { SchemaOptions } from './clickhouse/schema.ts';
import type { ClickHouseUrl } from './clickhouse-url.ts';
import type { DuckDBStoreOptions } from './duckdb/store.ts';
import type { Store, StoreEvents, StoreName } from './store.ts';

export interface StoreOptions extends DuckDBStoreOptions {
  /** Where records live, if not in the data directory. */
  readonly clickhouse?: ClickHouseUrl | undefined;
}

/** The statements that make the tables of a ClickHouse store. */
export async function printClickHouseSchema(options: SchemaOptions): Promise<string> {
  return (await import('./clickhouse/schema.ts')).printSchema(options);
}

/** Answers the migrations that were applied now. */
export async function applyClickHouseSchema(
  address: ClickHouseUrl,
  retentionDays: number,
): Promise<readonly number[]> {
  return (await import('./clickhouse/apply-schema.ts')).applySchema(address, retentionDays);
}

/** How far the spool of a data directory has come to ClickHouse. To be called by whoever holds that directory. */
export async function openClickHouseProgress(dataDirectory: string): Promise<Outbox> {
  const { Outbox } = await import('./clickhouse/outbox.ts');
  return Outbox.open(join(resolve(dataDirectory), 'clickhouse'));
}

export function storeNameOf({ clickhouse }: StoreOptions): StoreName {
  return clickhouse === undefined ? 'duckdb' : 'clickhouse';
}

/** Holds the data directory until the store is closed. */
export async function openStore(options: StoreOptions, watch: StoreEvents = {}): Promise<Store> {
  const lock = await lockDirectory(options.dataDirectory);
  try {
    const store = await openUnlocked(options, watch);
    return { ...store, close: () => store.close().finally(lock.release) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function openUnlocked(options: StoreOptions, watch: StoreEvents): Promise<Store> {
  const { clickhouse } = options;
  if (clickhouse !== undefined) {
    const { openClickHouseStore } = await import('./clickhouse/store.ts');
    return openClickHouseStore({ ...options, clickhouse }, watch);
  }
  const { openDuckDBStore } = await import('./duckdb/store.ts');
  return openDuckDBStore(options, watch);
}
