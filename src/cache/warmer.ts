// Refreshes cache entries in the background: one at a time, with low priority, and with a pause after each one, so that all
// refreshes together use at most a fifth of one query slot (the store has 8 slots). Entries that are not refreshed in time expire.
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { CacheEntry, ResultCache } from './result-cache.ts';

const CHECK_INTERVAL_MS = 1_000;
/** After a refresh, for how many times as long as it took no other one starts. */
const PAUSE_FACTOR = 4;

export class Warmer<V> {
  readonly #cache: ResultCache<V>;
  readonly #timer: Timer;
  readonly #onFailure: (key: string, error: unknown) => void;
  #due: CacheEntry<V>[] = [];
  /** A refresh runs, or the pause after it. */
  #isBusy = false;
  #stopped = false;
  #job: RepeatingJob | undefined;

  constructor(
    cache: ResultCache<V>,
    timer: Timer,
    onFailure: (key: string, error: unknown) => void = () => {},
  ) {
    this.#cache = cache;
    this.#timer = timer;
    this.#onFailure = onFailure;
  }

  start(): void {
    this.#job = every(this.#timer, CHECK_INTERVAL_MS, () => {
      this.#due = this.#cache.expireAndListDue();
      this.#refreshNext();
    });
  }

  /** No refresh starts after this, and failures are no longer reported: closing the store cancels running refreshes. */
  stop(): void {
    this.#stopped = true;
    void this.#job?.stop();
  }

  #refreshNext(): void {
    const entry = this.#stopped || this.#isBusy ? undefined : this.#due.shift();
    if (entry !== undefined) void this.#refresh(entry);
  }

  async #refresh(entry: CacheEntry<V>): Promise<void> {
    this.#isBusy = true;
    const startedAt = this.#timer.now();
    const hasRun = await this.#cache.refresh(entry, error => {
      if (!this.#stopped) this.#onFailure(entry.key, error);
    });
    const pauseMs = hasRun ? (this.#timer.now() - startedAt) * PAUSE_FACTOR : 0;
    this.#timer.after(pauseMs, () => {
      this.#isBusy = false;
      this.#refreshNext();
    });
  }
}
