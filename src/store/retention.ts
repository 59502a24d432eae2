// Removes records that are past their retention, every hour. A clock that jumps far ahead would remove everything: it has
// to hold for an hour before it is believed.

import type { Observe } from '../observe/event.ts';
import { type Clock, MICROS_PER_DAY } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import type { Store } from './store.ts';

const HOUR_MS = 3_600_000;
/** How often the clock is held against the time that really passed. */
const LOOK_MS = 60_000;
/** Clocks are set right by seconds; more than this is a jump. */
const JUMP_MS = 600_000;

export class Retention {
  readonly #store: Store;
  readonly #days: number;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #observe: Observe;
  #last: { readonly clockMs: number; readonly timerMs: number };
  /** Since when, by the timer, the clock has run as time does. */
  #steadySince: number;
  #removedAt = Number.NEGATIVE_INFINITY;
  #cancel = () => {};
  #removing: Promise<void> = Promise.resolve();

  constructor(store: Store, days: number, clock: Clock, timer: Timer, observe: Observe) {
    this.#store = store;
    this.#days = days;
    this.#clock = clock;
    this.#timer = timer;
    this.#observe = observe;
    this.#last = this.#times();
    this.#steadySince = timer.now();
  }

  start(): void {
    this.#cancel = this.#timer.after(LOOK_MS, () => {
      this.#look();
      this.start();
    });
  }

  async close(): Promise<void> {
    this.#cancel();
    await this.#removing;
  }

  #look(): void {
    const now = this.#times();
    const jumpMs = now.clockMs - this.#last.clockMs - (now.timerMs - this.#last.timerMs);
    this.#last = now;
    if (Math.abs(jumpMs) > JUMP_MS) {
      this.#steadySince = now.timerMs;
      this.#observe({ type: 'clock_jumped', seconds: Math.round(jumpMs / 1000) });
    }
    const isSteady = now.timerMs - this.#steadySince >= HOUR_MS;
    const isDue = now.timerMs - this.#removedAt >= HOUR_MS;
    if (!isSteady || !isDue) return;
    this.#removedAt = now.timerMs;
    this.#removing = this.#remove();
  }

  async #remove(): Promise<void> {
    try {
      const count = await this.#store.deleteBefore(this.#clock() - BigInt(this.#days) * MICROS_PER_DAY);
      if (count > 0) this.#observe({ type: 'records_expired', count });
    } catch (error) {
      this.#observe({ type: 'retention_failed', error });
    }
  }

  #times(): { clockMs: number; timerMs: number } {
    return { clockMs: Number(this.#clock() / 1000n), timerMs: this.#timer.now() };
  }
}
