// From a store's options to the store. The library of a store that is not used is never loaded.
import { join, resolve } from 'node:path';
import type { ClickHouseAddress } from '../store-address.ts';
import type { FrozenBlocks } from './clickhouse/frozen-blocks.ts';
import type { SchemaOptions } from './clickhouse/schema.ts';
import type { DuckDBStoreOptions } from './duckdb/store.ts';
import { lockFolder } from './folder-lock.ts';
import type { Store, StoreName, StoreWatch } from './store.ts';

export interface StoreOptions extends DuckDBStoreOptions {
  /** Where records live, if not in the data directory. */
  readonly clickhouse?: ClickHouseAddress | undefined;
}

/** The statements that make the tables of a ClickHouse store. */
export async function printClickHouseSchema(options: SchemaOptions): Promise<string> {
  return (await import('./clickhouse/schema.ts')).printSchema(options);
}

/** Answers the migrations that were applied now. */
export async function applyClickHouseSchema(
  address: ClickHouseAddress,
  retentionDays: number,
): Promise<readonly number[]> {
  return (await import('./clickhouse/apply-schema.ts')).applySchema(address, retentionDays);
}

/** How far the spool of a data directory has come to ClickHouse. To be called by whoever holds that directory. */
export async function openClickHouseProgress(dataFolder: string): Promise<FrozenBlocks> {
  const { FrozenBlocks } = await import('./clickhouse/frozen-blocks.ts');
  return FrozenBlocks.open(join(resolve(dataFolder), 'clickhouse'));
}

export function storeNameOf({ clickhouse }: StoreOptions): StoreName {
  return clickhouse === undefined ? 'duckdb' : 'clickhouse';
}

/** Holds the data directory until the store is closed. */
export async function openStore(options: StoreOptions, watch: StoreWatch = {}): Promise<Store> {
  const lock = await lockFolder(options.dataFolder);
  try {
    const store = await openUnlocked(options, watch);
    return { ...store, close: () => store.close().finally(lock.release) };
  } catch (error) {
    lock.release();
    throw error;
  }
}

async function openUnlocked(options: StoreOptions, watch: StoreWatch): Promise<Store> {
  const { clickhouse } = options;
  if (clickhouse !== undefined) {
    const { openClickHouseStore } = await import('./clickhouse/store.ts');
    return openClickHouseStore({ ...options, clickhouse }, watch);
  }
  const { openDuckDBStore } = await import('./duckdb/store.ts');
  return openDuckDBStore(options, watch);
}
