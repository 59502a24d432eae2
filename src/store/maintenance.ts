// Runs compactions of the store in the background.
import type { Observe } from '../observe/event.ts';
import type { Timer } from '../system/timer.ts';
import type { Store } from './store.ts';

const INTERVAL_MS = 10_000;

export class Maintenance {
  readonly #store: Store;
  readonly #timer: Timer;
  readonly #observe: Observe;
  #cancel = () => {};
  #isClosed = false;

  constructor(store: Store, timer: Timer, observe: Observe) {
    this.#store = store;
    this.#timer = timer;
    this.#observe = observe;
  }

  start(): void {
    if (this.#store.compact !== undefined) this.#schedule(INTERVAL_MS);
  }

  /** Does not wait for a running compaction: closing the store cancels it. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancel = this.#timer.after(delayMs, async () => this.#schedule(await this.#compact()));
  }

  /** Returns the delay until the next compaction in milliseconds: 0 as long as there is work. */
  async #compact(): Promise<number> {
    const startedAt = this.#timer.now();
    try {
      if (!(await this.#store.compact?.())) return INTERVAL_MS;
      this.#observe({ type: 'compacted', durationMs: this.#timer.now() - startedAt });
      return 0;
    } catch (error) {
      if (!this.#isClosed) this.#observe({ type: 'compaction_failed', error });
      return INTERVAL_MS;
    }
  }
}
