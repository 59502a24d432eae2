// A seeded random generator: the same seed creates the same traffic.

export class Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  /** A number from 0 (inclusive) to 1 (exclusive), by mulberry32. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }

  chance(probability: number): boolean {
    return this.next() < probability;
  }

  pick<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[Math.floor(this.next() * items.length)] ?? items[0];
  }

  /** A Poisson-distributed count (Knuth's algorithm; a large mean is split to avoid underflow). */
  poisson(mean: number): number {
    if (mean > 30) return this.poisson(mean / 2) + this.poisson(mean / 2);
    const limit = Math.exp(-mean);
    let count = 0;
    for (let product = this.next(); product > limit; product *= this.next()) count++;
    return count;
  }

  /** A log-normally distributed duration in milliseconds. `sigma`: standard deviation of the logarithm. */
  duration(medianMs: number, sigma: number): number {
    const normal = Math.sqrt(-2 * Math.log(1 - this.next())) * Math.cos(2 * Math.PI * this.next());
    return Math.round(medianMs * Math.exp(sigma * normal) * 100) / 100;
  }
}
