// Has the store lay its records anew, as often as there is something to do.

import type { Observe } from '../observe/event.ts';
import type { Clock } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import type { Store } from './store.ts';

const LOOK_MS = 10_000;
/** After a failure, such as a full disk. */
const RETRY_MS = 600_000;

export class Maintenance {
  readonly #store: Store;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #observe: Observe;
  #cancel = () => {};
  #isClosed = false;

  constructor(store: Store, clock: Clock, timer: Timer, observe: Observe) {
    this.#store = store;
    this.#clock = clock;
    this.#timer = timer;
    this.#observe = observe;
  }

  start(afterMs = LOOK_MS): void {
    if (this.#store.compact === undefined || this.#isClosed) return;
    this.#cancel = this.#timer.after(afterMs, () => void this.#tidy());
  }

  /** What runs is ended by the store when it closes. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  async #tidy(): Promise<void> {
    try {
      const wasDue = (await this.#store.compact?.(this.#clock())) === true;
      if (wasDue) this.#observe({ type: 'compacted' });
      this.start(wasDue ? 0 : LOOK_MS);
    } catch (error) {
      if (!this.#isClosed) this.#observe({ type: 'compaction_failed', error });
      this.start(RETRY_MS);
    }
  }
}
