// Throttles guessing of tokens, per address: the more wrong tokens an address sends, the later its 401 responses. Only failures
// are delayed, so a valid token never waits because of the failures of others behind the same proxy.
import type { Timer } from '../system/timer.ts';

/** Failures without a delay: typing errors and dashboards with an old token. */
const FREE_FAILURES = 10;
/** Each failure adds this much delay, and this much time removes it again. */
const DELAY_PER_FAILURE_MS = 200;
const MAX_DELAY_MS = 10_000;
/** Above this many addresses, those without a remaining delay are dropped. */
const MAX_ADDRESSES = 10_000;

export class AuthThrottle {
  readonly #timer: Timer;
  /** When the failures of an address have all expired. */
  readonly #expiresAt = new Map<string, number>();

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** Counts a failure of this address and waits for the resulting delay. */
  async delayFailure(address: string): Promise<void> {
    const delayMs = this.#countFailure(address);
    if (delayMs > 0) await new Promise<void>(resolve => this.#timer.after(delayMs, resolve));
  }

  #countFailure(address: string): number {
    const now = this.#timer.now();
    if (this.#expiresAt.size >= MAX_ADDRESSES) this.#dropExpired(now);
    const freeMs = FREE_FAILURES * DELAY_PER_FAILURE_MS;
    const limit = now + MAX_DELAY_MS + freeMs;
    const before = Math.max(now, this.#expiresAt.get(address) ?? now);
    const expiresAt = Math.min(before + DELAY_PER_FAILURE_MS, limit);
    this.#expiresAt.set(address, expiresAt);
    return Math.max(0, expiresAt - now - freeMs);
  }

  #dropExpired(now: number): void {
    for (const [address, expiresAt] of this.#expiresAt) if (expiresAt <= now) this.#expiresAt.delete(address);
    // If all are active, dropping every address is better than growing without bound.
    if (this.#expiresAt.size >= MAX_ADDRESSES) this.#expiresAt.clear();
  }
}
