// Makes guessing slow: an address that presents wrong tokens gets its refusals later and later. Only refusals wait, so a
// good token is never kept waiting for the failures of others behind the same proxy.
import type { Timer } from '../system/timer.ts';

/** Wrong tokens that are refused at once, before the brake is felt: typing errors and stale dashboards. */
const FREE_FAILURES = 10;
const PAUSE_MS = 200;
const LONGEST_WAIT_MS = 10_000;
/** Beyond this many addresses, those that have been quiet are forgotten. */
const MAX_ADDRESSES = 10_000;

export class AuthThrottle {
  readonly #timer: Timer;
  /** When the failures of an address will be forgotten: each adds a pause. */
  readonly #forgottenAt = new Map<string, number>();

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** Waits as long as the next refusal to this address shall take. */
  async delayRefusal(address: string): Promise<void> {
    const waitMs = this.#noteFailure(address);
    if (waitMs > 0) await new Promise<void>(resolve => this.#timer.after(waitMs, resolve));
  }

  #noteFailure(address: string): number {
    const now = this.#timer.now();
    if (this.#forgottenAt.size >= MAX_ADDRESSES) this.#forgetQuiet(now);
    const limit = now + LONGEST_WAIT_MS + FREE_FAILURES * PAUSE_MS;
    const forgottenAt = Math.min(Math.max(now, this.#forgottenAt.get(address) ?? now) + PAUSE_MS, limit);
    this.#forgottenAt.set(address, forgottenAt);
    return Math.max(0, forgottenAt - now - FREE_FAILURES * PAUSE_MS);
  }

  #forgetQuiet(now: number): void {
    for (const [address, forgottenAt] of this.#forgottenAt)
      if (forgottenAt <= now) this.#forgottenAt.delete(address);
    // All of them busy: forgetting some costs less than growing without end.
    if (this.#forgottenAt.size >= MAX_ADDRESSES) this.#forgottenAt.clear();
  }
}
