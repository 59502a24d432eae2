// A load that tests hold in their hands: counts its runs, fails or hangs when told, notices being cancelled.
import type { LoadPriority } from '../../src/cache/single-flight.ts';
import type { Timer } from '../../src/system/timer.ts';

export class CountedLoad {
  runs = 0;
  cancelled = 0;
  failing = false;
  /** How long a run takes. */
  tookMs = 0;
  lastUrgency: LoadPriority | undefined;
  readonly #timer: Timer;

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** Answers the number of its run. */
  readonly load = (signal: AbortSignal, urgency: LoadPriority): Promise<number> => {
    const run = ++this.runs;
    this.lastUrgency = urgency;
    return new Promise((resolve, reject) => {
      signal.addEventListener('abort', () => {
        this.cancelled++;
        reject(signal.reason);
      });
      const finish = () => (this.failing ? reject(new Error('the store is away')) : resolve(run));
      if (this.tookMs === 0) finish();
      else this.#timer.after(this.tookMs, finish);
    });
  };
}
