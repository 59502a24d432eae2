// Throttles repeated log lines: the first is logged immediately, the next after 1 s, then after 2 s, 4 s and so on, up to one a
// minute.

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;

interface Series {
  loggedAt: number;
  /** Nothing is logged for this long after `loggedAt`. */
  pauseMs: number;
  suppressed: number;
}

export class LogThrottle {
  readonly #now: () => number;
  readonly #series = new Map<string, Series>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the number of lines suppressed since the last logged one, or undefined if this line must be suppressed too. */
  next(name: string): number | undefined {
    const now = this.#now();
    const series = this.#series.get(name);
    const elapsed = now - (series?.loggedAt ?? 0);
    if (series === undefined || elapsed > 2 * MAX_PAUSE_MS) {
      this.#series.set(name, { loggedAt: now, pauseMs: FIRST_PAUSE_MS, suppressed: 0 });
      return series?.suppressed ?? 0;
    }
    if (elapsed < series.pauseMs) {
      series.suppressed++;
      return undefined;
    }
    const pauseMs = Math.min(2 * series.pauseMs, MAX_PAUSE_MS);
    this.#series.set(name, { loggedAt: now, pauseMs, suppressed: 0 });
    return series.suppressed;
  }

  /** Ends a series: the next line of this name is logged immediately. */
  reset(name: string): void {
    this.#series.delete(name);
  }
}
