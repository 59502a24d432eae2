// Refreshes cache entries in the background: a few at a time, with low priority, and with a pause after each one, so that
// all refreshes together use at most a fifth of the time. If there are more entries than that allows, the rest expire.
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { CacheEntry, ResultCache } from './result-cache.ts';

const CHECK_INTERVAL_MS = 1_000;
/** Refreshes use at most 1 / 5 of the time. With n refreshes at a time, each pauses for 5n - 1 times its duration. */
const BUSY_TIME_DIVISOR = 5;

export class Warmer<V> {
  readonly #cache: ResultCache<V>;
  readonly #timer: Timer;
  readonly #concurrency: number;
  #due: CacheEntry<V>[] = [];
  #running = 0;
  #stopped = false;
  #job: RepeatingJob | undefined;

  constructor(cache: ResultCache<V>, timer: Timer, concurrency: number) {
    this.#cache = cache;
    this.#timer = timer;
    this.#concurrency = concurrency;
  }

  start(): void {
    this.#job = every(this.#timer, CHECK_INTERVAL_MS, () => {
      this.#due = this.#cache.listDue();
      this.#startRefreshes();
    });
  }

  /** No refresh starts after this. */
  stop(): void {
    this.#stopped = true;
    void this.#job?.stop();
  }

  #startRefreshes(): void {
    while (!this.#stopped && this.#running < this.#concurrency) {
      const entry = this.#due.shift();
      if (entry === undefined) return;
      void this.#refresh(entry);
    }
  }

  async #refresh(entry: CacheEntry<V>): Promise<void> {
    this.#running++;
    const startedAt = this.#timer.now();
    const wasDue = await this.#cache.refresh(entry);
    const tookMs = this.#timer.now() - startedAt;
    const pauseMs = wasDue ? tookMs * (BUSY_TIME_DIVISOR * this.#concurrency - 1) : 0;
    this.#timer.after(pauseMs, () => {
      this.#running--;
      this.#startRefreshes();
    });
  }
}
