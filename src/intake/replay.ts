// Shows a store what lies in the spool of a server that is not running. The spool stays as it is.
import { existsSync } from 'node:fs';
import { systemClock } from '../clock.ts';
import type { Store } from '../store/store.ts';
import { systemTimer } from '../timer.ts';
import { Folding } from './folding.ts';
import { Spool, spoolFolderIn } from './spool.ts';

/** To be called by whoever holds the data directory. */
export async function replaySpool(dataFolder: string, store: Store): Promise<void> {
  const folder = spoolFolderIn(dataFolder);
  if (!existsSync(folder)) return;
  const observe = () => {};
  const { spool } = await Spool.open(folder, kind => store.reached(kind), observe);
  await new Folding({ spool, store, clock: systemClock, timer: systemTimer, observe }).catchUp();
  await spool.close();
}
