// Opens a store for a command. As in a server, the log reports if a file of the store was repaired, or if the store rejected a
// single record, which then goes to the quarantine.
import { createStoreCallbacks, Quarantine } from '../intake/quarantine.ts';
import { logTo } from '../observe/log.ts';
import { openStore, type StoreOptions } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';

export async function openLoggedStore(options: StoreOptions): Promise<Store> {
  const observe = logTo(process.stdout, process.stderr);
  const quarantine = new Quarantine(options.dataDirectory, observe);
  const store = await openStore(options, createStoreCallbacks(quarantine, systemClock, observe));
  return { ...store, close: () => store.close().finally(() => quarantine.idle()) };
}
