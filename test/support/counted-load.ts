// A load for tests: counts its runs and cancellations, and can fail or take time.
import type { Callers } from '../../src/cache/single-flight.ts';
import type { Timer } from '../../src/system/timer.ts';

export class CountedLoad {
  runs = 0;
  cancelled = 0;
  failing = false;
  /** Duration of a run, by the timer. */
  tookMs = 0;
  lastCallers: Callers | undefined;
  readonly #timer: Timer;

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** Resolves to the number of the run, from 1. */
  readonly load = (signal: AbortSignal, callers: Callers): Promise<number> => {
    const run = ++this.runs;
    this.lastCallers = callers;
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => {
        this.cancelled++;
        reject(signal.reason);
      });
      const finish = () => (this.failing ? reject(new Error('the store is unavailable')) : resolve(run));
      if (this.tookMs === 0) finish();
      else this.#timer.after(this.tookMs, finish);
    });
  };
}
