// From a store's name to the store. The library of a store that is not used is never loaded.
import type { DuckDBStoreOptions } from './duckdb/store.ts';
import type { Store, StoreWatch } from './store.ts';

export type StoreOptions = DuckDBStoreOptions;

export async function openStore(options: StoreOptions, watch: StoreWatch = {}): Promise<Store> {
  const { openDuckDBStore } = await import('./duckdb/store.ts');
  return openDuckDBStore(options, watch);
}
