// Throttles the responses to wrong secrets by client address: after the first few, an address gets 5 per second in total, however
// many connections it uses. Only these responses are throttled, so a valid token never waits because of other clients.
import {
  FAILURE_INTERVAL_MS,
  FREE_FAILURES,
  MAX_ADDRESSES,
  MAX_WAITING,
  MAX_WAITING_PER_ADDRESS,
} from '../domain/limits.ts';
import type { Timer } from '../system/timer.ts';

export class AuthThrottle {
  readonly #timer: Timer;
  /** The time at which all failures of an address have drained, by the key of the address, least recent failure first. */
  readonly #drainedAt = new Map<string, number>();
  #waiting = 0;

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /**
   * Counts a failure of this address and returns the delay of its response in milliseconds. If too many responses wait already,
   * returns undefined and does not count the failure.
   */
  countFailure(address: string): number | undefined {
    const now = this.#timer.now();
    const key = keyOf(address);
    const drainedAt = Math.max(now, this.#drainedAt.get(key) ?? now) + FAILURE_INTERVAL_MS;
    const delayMs = Math.max(0, drainedAt - now - FREE_FAILURES * FAILURE_INTERVAL_MS);
    if (delayMs > MAX_WAITING_PER_ADDRESS * FAILURE_INTERVAL_MS) return undefined;
    if (delayMs > 0 && this.#waiting >= MAX_WAITING) return undefined;
    this.#drainedAt.delete(key); // so that it moves to the end
    this.#drainedAt.set(key, drainedAt);
    if (this.#drainedAt.size > MAX_ADDRESSES) this.#forgetOldest();
    return delayMs;
  }

  /** Calls back after the delay. The returned function ends the wait early, without the call. */
  wait(delayMs: number, callback: () => void): () => void {
    this.#waiting++;
    let isWaiting = true;
    const end = () => {
      if (isWaiting) this.#waiting--;
      isWaiting = false;
    };
    const cancel = this.#timer.after(delayMs, () => {
      end();
      callback();
    });
    return () => {
      cancel();
      end();
    };
  }

  #forgetOldest(): void {
    for (const [key] of this.#drainedAt) {
      this.#drainedAt.delete(key);
      return;
    }
  }
}

/** An IPv4 address, or the first 64 bits of an IPv6 address: one client usually has a whole /64 network. */
function keyOf(address: string): string {
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const tailGroups = tail === '' ? [] : tail.split(':');
    while (groups.length + tailGroups.length < 8) groups.push('0');
    groups.push(...tailGroups);
  }
  return groups.slice(0, 4).join(':');
}
