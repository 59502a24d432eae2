// Deletes records that are past their retention, every hour. If the clock jumped far ahead, all records would seem expired. So
// after the start, and after a jump, nothing is deleted until the clock has been steady for an hour.
import type { Observe } from '../observe/event.ts';
import { type Clock, MICROS_PER_DAY } from '../system/clock.ts';
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { Store } from './store.ts';

const HOUR_MS = 3_600_000;
/** How often the clock is compared with the timer, which never jumps. */
const CHECK_MS = 60_000;
/** If the clock changed by more than this relative to the timer, it jumped. Time synchronization changes it by seconds. */
const JUMP_MS = 600_000;

export class Retention {
  readonly #store: Store;
  readonly #days: number;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #observe: Observe;
  #lastCheck: { readonly clockMs: number; readonly timerMs: number };
  /** The time of the last jump, or of the start, in milliseconds of the timer. */
  #steadySince: number;
  /** When the last deletion started, in milliseconds of the timer. */
  #deletedAt = Number.NEGATIVE_INFINITY;
  #job: RepeatingJob | undefined;
  #isClosed = false;

  constructor(store: Store, days: number, clock: Clock, timer: Timer, observe: Observe) {
    this.#store = store;
    this.#days = days;
    this.#clock = clock;
    this.#timer = timer;
    this.#observe = observe;
    this.#lastCheck = this.#readTimes();
    this.#steadySince = timer.now();
  }

  start(): void {
    this.#job = every(this.#timer, CHECK_MS, () => this.#check());
  }

  /** Does not wait for a running deletion: closing the store cancels it. */
  close(): void {
    this.#isClosed = true;
    void this.#job?.stop();
  }

  async #check(): Promise<void> {
    const now = this.#readTimes();
    const jumpMs = now.clockMs - this.#lastCheck.clockMs - (now.timerMs - this.#lastCheck.timerMs);
    this.#lastCheck = now;
    if (Math.abs(jumpMs) > JUMP_MS) {
      this.#steadySince = now.timerMs;
      this.#observe({ type: 'clock_jumped', seconds: Math.round(jumpMs / 1000) });
    }
    const isSteady = now.timerMs - this.#steadySince >= HOUR_MS;
    const isDue = now.timerMs - this.#deletedAt >= HOUR_MS;
    if (!isSteady || !isDue) return;
    this.#deletedAt = now.timerMs;
    await this.#deleteExpired();
  }

  async #deleteExpired(): Promise<void> {
    try {
      const retention = BigInt(this.#days) * MICROS_PER_DAY;
      const expiredBefore = this.#clock() - retention;
      const maxDelay = retention / 10n > MICROS_PER_DAY ? retention / 10n : MICROS_PER_DAY;
      const count = await this.#store.deleteExpired({
        expiredBefore,
        rewriteBefore: expiredBefore - maxDelay,
      });
      if (count > 0) this.#observe({ type: 'records_expired', count });
    } catch (error) {
      if (!this.#isClosed) this.#observe({ type: 'retention_failed', error });
    }
  }

  #readTimes(): { clockMs: number; timerMs: number } {
    return { clockMs: Number(this.#clock() / 1000n), timerMs: this.#timer.now() };
  }
}
