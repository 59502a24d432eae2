// Runs the store's maintenance in the background: compaction, and vacuum when there is nothing to compact.
import type { Observe } from '../observe/event.ts';
import type { Clock } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import type { Store } from './store.ts';

const INTERVAL_MS = 10_000;
/**
 * No job runs for this time after a failed vacuum, such as on a full disk. After a failed compaction the store itself skips the
 * failed kind.
 */
const VACUUM_RETRY_MS = 600_000;

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

  start(): void {
    const { compact, vacuum } = this.#store;
    if (compact !== undefined || vacuum !== undefined) this.#schedule(INTERVAL_MS);
  }

  /** Does not wait for a running job: closing the store cancels it. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancel = this.#timer.after(delayMs, async () => this.#schedule(await this.#runNext()));
  }

  /** Runs one job. Returns the delay until the next one in milliseconds: 0 as long as there is work. */
  async #runNext(): Promise<number> {
    let startedAt = this.#timer.now();
    const elapsed = () => this.#timer.now() - startedAt;
    try {
      if (await this.#store.compact?.(this.#clock())) {
        this.#observe({ type: 'compacted', durationMs: elapsed() });
        return 0;
      }
    } catch (error) {
      if (!this.#isClosed) this.#observe({ type: 'compaction_failed', error });
      return INTERVAL_MS;
    }
    startedAt = this.#timer.now();
    try {
      if (!(await this.#store.vacuum?.())) return INTERVAL_MS;
      this.#observe({ type: 'vacuumed', durationMs: elapsed() });
      return 0;
    } catch (error) {
      if (!this.#isClosed) this.#observe({ type: 'vacuum_failed', error });
      return VACUUM_RETRY_MS;
    }
  }
}
