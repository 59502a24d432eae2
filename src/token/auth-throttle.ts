// Throttles guessing of secrets by client address: the more wrong secrets an address sends, the longer its 401 responses are
// delayed. Only failures are delayed, so a valid token never waits because of other clients behind the same proxy.
import type { Timer } from '../system/timer.ts';

/** Failures without a delay, for typing errors and dashboards with an old token. */
const FREE_FAILURES = 10;
/** A leaky bucket: each failure adds this much delay, and the delay drains as time passes. */
const DELAY_PER_FAILURE_MS = 200;
const MAX_DELAY_MS = 10_000;
/** When this many addresses are tracked, those whose failures have all drained are forgotten. */
const MAX_ADDRESSES = 10_000;

export class AuthThrottle {
  readonly #timer: Timer;
  /** The time at which all failures of an address have drained, by address. */
  readonly #drainedAt = new Map<string, number>();

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** Counts a failure of this address and waits for the resulting delay. */
  async delayFailure(address: string): Promise<void> {
    const delayMs = this.#countFailure(address);
    if (delayMs > 0) await new Promise<void>(resolve => this.#timer.after(delayMs, resolve));
  }

  /** Returns the delay in milliseconds. */
  #countFailure(address: string): number {
    const now = this.#timer.now();
    if (this.#drainedAt.size >= MAX_ADDRESSES) this.#dropDrained(now);
    const freeMs = FREE_FAILURES * DELAY_PER_FAILURE_MS;
    const limit = now + MAX_DELAY_MS + freeMs;
    const before = Math.max(now, this.#drainedAt.get(address) ?? now);
    const drainedAt = Math.min(before + DELAY_PER_FAILURE_MS, limit);
    this.#drainedAt.set(address, drainedAt);
    return Math.max(0, drainedAt - now - freeMs);
  }

  #dropDrained(now: number): void {
    for (const [address, drainedAt] of this.#drainedAt) if (drainedAt <= now) this.#drainedAt.delete(address);
    // If no address has drained, all are forgotten, because memory must stay bounded.
    if (this.#drainedAt.size >= MAX_ADDRESSES) this.#drainedAt.clear();
  }
}
