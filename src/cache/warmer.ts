// Refreshes cache entries in the background: a few at a time, with low priority, and with a pause after each one, so that
// all refreshes together use at most a fifth of one query slot (the store has 8 slots). Entries that are not
// refreshed in time expire.
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { CacheEntry, ResultCache } from './result-cache.ts';

const CHECK_INTERVAL_MS = 1_000;
/** One fifth of the time of one query slot: with n concurrent refreshes, each pauses for (5n - 1) times as long as it ran. */
const BUSY_TIME_DIVISOR = 5;

export class Warmer<V> {
  readonly #cache: ResultCache<V>;
  readonly #timer: Timer;
  readonly #concurrency: number;
  readonly #onFailure: (key: string, error: unknown) => void;
  #due: CacheEntry<V>[] = [];
  /** Refreshes that run or pause. */
  #occupied = 0;
  #stopped = false;
  #job: RepeatingJob | undefined;

  constructor(
    cache: ResultCache<V>,
    timer: Timer,
    concurrency: number,
    onFailure: (key: string, error: unknown) => void = () => {},
  ) {
    this.#cache = cache;
    this.#timer = timer;
    this.#concurrency = concurrency;
    this.#onFailure = onFailure;
  }

  start(): void {
    this.#job = every(this.#timer, CHECK_INTERVAL_MS, () => {
      this.#due = this.#cache.expireAndListDue();
      this.#startRefreshes();
    });
  }

  /** No refresh starts after this, and failures are no longer reported: closing the store cancels running refreshes. */
  stop(): void {
    this.#stopped = true;
    void this.#job?.stop();
  }

  #startRefreshes(): void {
    while (!this.#stopped && this.#occupied < this.#concurrency) {
      const entry = this.#due.shift();
      if (entry === undefined) return;
      void this.#refresh(entry);
    }
  }

  async #refresh(entry: CacheEntry<V>): Promise<void> {
    this.#occupied++;
    const startedAt = this.#timer.now();
    const hasRun = await this.#cache.refresh(entry, error => {
      if (!this.#stopped) this.#onFailure(entry.key, error);
    });
    const tookMs = this.#timer.now() - startedAt;
    const pauseMs = hasRun ? tookMs * (BUSY_TIME_DIVISOR * this.#concurrency - 1) : 0;
    this.#timer.after(pauseMs, () => {
      this.#occupied--;
      this.#startRefreshes();
    });
  }
}
