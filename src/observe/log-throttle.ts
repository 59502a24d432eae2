// Throttles repeated log lines with exponential back-off: after a logged line, lines with the same name (what the event
// concerns, `throttleBy` in event.ts) are suppressed for 1 s, then for 2 s, 4 s and so on, up to 60 s.

const FIRST_PAUSE_MS = 1_000;
const MAX_PAUSE_MS = 60_000;
/** A series ends this long after its last logged line. */
const SERIES_MS = 2 * MAX_PAUSE_MS;
/** A name can contain text from a client, such as its address. Once there are this many series, all further names share one. */
const MAX_SERIES = 500;
const SHARED_NAME = '\0';

interface Series {
  loggedAt: number;
  /** Nothing is logged for this long after `loggedAt`. */
  pauseMs: number;
  suppressed: number;
}

export class LogThrottle {
  readonly #now: () => number;
  readonly #seriesByName = new Map<string, Series>();

  constructor(now: () => number) {
    this.#now = now;
  }

  /** Returns the number of lines suppressed since the last logged one, or undefined if this line must be suppressed, too. */
  admit(name: string): number | undefined {
    const now = this.#now();
    const key = this.#seriesByName.has(name) || this.#hasSpace(now) ? name : SHARED_NAME;
    const series = this.#seriesByName.get(key);
    const elapsedMs = now - (series?.loggedAt ?? 0);
    if (series === undefined || elapsedMs > SERIES_MS) {
      this.#seriesByName.set(key, { loggedAt: now, pauseMs: FIRST_PAUSE_MS, suppressed: 0 });
      return series?.suppressed ?? 0;
    }
    if (elapsedMs < series.pauseMs) {
      series.suppressed++;
      return undefined;
    }
    const pauseMs = Math.min(2 * series.pauseMs, MAX_PAUSE_MS);
    this.#seriesByName.set(key, { loggedAt: now, pauseMs, suppressed: 0 });
    return series.suppressed;
  }

  /** Whether there is space for one more series. Forgets those that have ended, if necessary. */
  #hasSpace(now: number): boolean {
    if (this.#seriesByName.size < MAX_SERIES) return true;
    for (const [name, { loggedAt }] of this.#seriesByName)
      if (now - loggedAt > SERIES_MS) this.#seriesByName.delete(name);
    return this.#seriesByName.size < MAX_SERIES;
  }

  /** Ends a series: the next line with this name is logged immediately. */
  reset(name: string): void {
    this.#seriesByName.delete(name);
  }
}
