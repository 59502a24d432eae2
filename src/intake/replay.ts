// Shows a store what lies in the spool of a server that is not running. The spool stays as it is.
import { existsSync } from 'node:fs';
import type { Store } from '../store/store.ts';
import { systemClock } from '../system/clock.ts';
import { systemTimer } from '../system/timer.ts';
import { Applier } from './applier.ts';
import { Spool, spoolDirectoryIn } from './spool.ts';

/** To be called by whoever holds the data directory. */
export async function replaySpool(dataDirectory: string, store: Store): Promise<void> {
  const folder = spoolDirectoryIn(dataDirectory);
  if (!existsSync(folder)) return;
  const observe = () => {};
  const { spool } = await Spool.open(folder, kind => store.seenUpTo(kind), observe);
  await new Applier({ spool, store, clock: systemClock, timer: systemTimer, observe }).catchUp();
  await spool.close();
}
