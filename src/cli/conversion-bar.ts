// Shows the conversion of a store of an earlier release as a progress bar, if the log is on a terminal.
import type { Observe } from '../observe/event.ts';
import { createProgressBar } from './progress-bar.ts';

/** Runs `open` with an observer that shows progress events as a bar and passes all other events to `log`. */
export async function withConversionBar<T>(
  log: Observe,
  terminal: NodeJS.WriteStream,
  open: (observe: Observe) => Promise<T>,
): Promise<T> {
  if (!terminal.isTTY) return open(log);
  const bar = createProgressBar('converting the store', terminal);
  const observe: Observe = event => {
    if (event.type === 'conversion_progress') return bar.update(event.share, `${event.records} records`);
    if (event.type === 'converted') bar.clear();
    log(event);
  };
  return open(observe).finally(() => bar.clear());
}
