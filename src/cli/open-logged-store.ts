// Opens a store for a command, and logs what opening it repaired, as a server does.
import { createStoreCallbacks, Quarantine } from '../intake/quarantine.ts';
import { logTo } from '../observe/log.ts';
import { openStore, type StoreOptions } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';

/** For a command that reads. Does not report records of the spool that the store rejects: the next server does. */
export function openLoggedStore(options: StoreOptions): Promise<Store> {
  return openStore(options, { observe: logTo(process.stdout, process.stderr) });
}

/** For a command that stores records. Those that the store rejects go to the quarantine of `dataDirectory`. */
export async function openStoreWithQuarantine(options: StoreOptions, dataDirectory: string): Promise<Store> {
  const observe = logTo(process.stdout, process.stderr);
  const quarantine = new Quarantine(dataDirectory, observe);
  const store = await openStore(options, createStoreCallbacks(quarantine, systemClock, observe));
  return { ...store, close: () => quarantine.idle().finally(() => store.close()) };
}
