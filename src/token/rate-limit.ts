// How often a token may ask: a bucket that holds one second's worth of requests, at least one, and refills steadily.
import type { Timer } from '../system/timer.ts';
import type { Token } from './token.ts';

interface Bucket {
  level: number;
  filledAt: number;
}

export class RateLimit {
  readonly #timer: Timer;
  /** By hash, so that a bucket outlives a tokens file that is read again. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** Takes one request out of a token's bucket. Answers how many seconds to wait where it is empty, else 0. */
  take({ sha256, rate }: Token): number {
    if (rate === undefined) return 0;
    const now = this.#timer.now();
    const capacity = Math.max(1, rate);
    const bucket = this.#buckets.get(sha256) ?? { level: capacity, filledAt: now };
    bucket.level = Math.min(capacity, bucket.level + ((now - bucket.filledAt) / 1000) * rate);
    bucket.filledAt = now;
    this.#buckets.set(sha256, bucket);
    if (bucket.level < 1) return (1 - bucket.level) / rate;
    bucket.level--;
    return 0;
  }
}
