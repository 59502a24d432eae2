// The rate limit of each API token: a token bucket, whose tokens are called permits here. The bucket holds at most the permits of
// one second (at least 1). Each request takes one permit, and the bucket refills continuously.
import type { Timer } from '../system/timer.ts';
import type { Token } from './token.ts';

interface Bucket {
  /** Permits in the bucket. Can be a fraction. */
  level: number;
  /** The timer's time in milliseconds. */
  refilledAt: number;
}

export class RateLimit {
  readonly #timer: Timer;
  /** By the hash of the secret, so that a bucket survives a reload of the tokens file. */
  readonly #buckets = new Map<string, Bucket>();

  constructor(timer: Timer) {
    this.#timer = timer;
  }

  /** Takes one permit from the token's bucket. Returns 0, or the seconds until the next permit if the bucket is empty. */
  take({ sha256, rate }: Token): number {
    if (rate === undefined) return 0;
    const now = this.#timer.now();
    const capacity = Math.max(1, rate);
    const bucket = this.#buckets.get(sha256) ?? { level: capacity, refilledAt: now };
    bucket.level = Math.min(capacity, bucket.level + ((now - bucket.refilledAt) / 1000) * rate);
    bucket.refilledAt = now;
    this.#buckets.set(sha256, bucket);
    if (bucket.level < 1) return (1 - bucket.level) / rate;
    bucket.level--;
    return 0;
  }
}
