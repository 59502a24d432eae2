// Keeps a cache warm and is a good neighbour: a few loads at once, behind callers' queries, and after each a pause, so
// that all warming together takes at most a fifth of the time. What does not fit ages towards its end.
import type { Timer } from '../system/timer.ts';
import type { CacheEntry, ResultCache } from './result-cache.ts';

const LOOK_EVERY_MS = 1_000;
/** One part warming, four parts not. */
const SHARE = 5;

export class Warmer<V> {
  readonly #cache: ResultCache<V>;
  readonly #timer: Timer;
  readonly #concurrency: number;
  #due: CacheEntry<V>[] = [];
  #busy = 0;
  #stopped = false;
  #cancelLook = () => {};

  constructor(cache: ResultCache<V>, timer: Timer, concurrency: number) {
    this.#cache = cache;
    this.#timer = timer;
    this.#concurrency = concurrency;
  }

  start(): void {
    this.#cancelLook = this.#timer.after(LOOK_EVERY_MS, () => {
      this.#due = this.#cache.listDue();
      this.#fill();
      if (!this.#stopped) this.start();
    });
  }

  /** No warming starts after this. */
  stop(): void {
    this.#stopped = true;
    this.#cancelLook();
  }

  #fill(): void {
    while (!this.#stopped && this.#busy < this.#concurrency) {
      const entry = this.#due.shift();
      if (entry === undefined) return;
      void this.#warm(entry);
    }
  }

  async #warm(entry: CacheEntry<V>): Promise<void> {
    this.#busy++;
    const startedAt = this.#timer.now();
    const didWork = await this.#cache.refresh(entry);
    const tookMs = this.#timer.now() - startedAt;
    const pauseMs = didWork ? tookMs * (SHARE * this.#concurrency - 1) : 0;
    this.#timer.after(pauseMs, () => {
      this.#busy--;
      this.#fill();
    });
  }
}
