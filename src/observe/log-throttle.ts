// What happens again and again is told at growing distances: at once, after a second, after two, up to once a minute.

const FIRST_MS = 1_000;
const MOST_MS = 60_000;

interface Series {
  toldAt: number;
  /** How long nothing is told after that. */
  pauseMs: number;
  untold: number;
}

export class LogThrottle {
  readonly #now: () => number;
  readonly #series = new Map<string, Series>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** How many were not told since the last one that was; undefined: this one is not to be told, either. */
  next(name: string): number | undefined {
    const now = this.#now();
    const series = this.#series.get(name);
    const elapsed = now - (series?.toldAt ?? 0);
    if (series === undefined || elapsed > 2 * MOST_MS) {
      this.#series.set(name, { toldAt: now, pauseMs: FIRST_MS, untold: 0 });
      return series?.untold ?? 0;
    }
    if (elapsed < series.pauseMs) {
      series.untold++;
      return undefined;
    }
    this.#series.set(name, { toldAt: now, pauseMs: Math.min(2 * series.pauseMs, MOST_MS), untold: 0 });
    return series.untold;
  }

  /** It is over: the next one is told at once. */
  reset(name: string): void {
    this.#series.delete(name);
  }
}
