// Opens a store for a command, and logs what opening it repaired, as a server does. Records that the store rejects go to the
// quarantine. If the command replays the spool without a flush, the next server replays it again, and quarantines them again.
import { createStoreCallbacks, Quarantine } from '../intake/quarantine.ts';
import { logTo } from '../observe/log.ts';
import { openStore, type StoreOptions } from '../store/open-store.ts';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { withConversionBar } from './conversion-bar.ts';

/** `quarantineDirectory`: the data directory with the quarantine. */
export async function openLoggedStore(
  options: StoreOptions,
  quarantineDirectory = options.dataDirectory,
): Promise<Store> {
  const log = logTo(process.stdout, process.stderr);
  const quarantine = new Quarantine(quarantineDirectory, log);
  const store = await withConversionBar(log, process.stderr, observe =>
    openStore(options, createStoreCallbacks(quarantine, systemClock, observe)),
  );
  return { ...store, close: () => quarantine.idle().finally(() => store.close()) };
}
