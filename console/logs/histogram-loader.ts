// Loads the histogram of a search. The list is refreshed every few seconds, the histogram less often, because it counts all records
// of the time range.
import { ApiError, type QueryResult, runQuery } from '../api/client.ts';
import type { TimeRange } from '../chart/chart-data.ts';
import type { UrlState } from '../url-state.ts';
import { Histogram, sumCounts } from './histogram.ts';
import { toFilterKey, toFilters } from './search-state.ts';
import { toBounds } from './time-range.ts';

export interface HistogramLoaderOptions {
  /** Undefined if the token cannot call logs.histogram. */
  readonly endpoint: string | undefined;
  /** The retention of the tier. */
  toRetentionDays(settings: UrlState['settings']): number;
  onZoom(range: TimeRange): void;
  /** Reports the number of records; undefined if it is unknown. */
  onTotal(total: number | undefined): void;
}

const MAX_AGE_MS = 30_000;

export class HistogramLoader {
  readonly element: HTMLElement;
  readonly #options: HistogramLoaderOptions;
  readonly #histogram: Histogram;
  #request: AbortController | undefined;
  /** The key (`toFilterKey`) of the search whose histogram is shown or loading; empty while the histogram is hidden. */
  #filterKey = '';
  #requestedAt = 0;

  constructor(options: HistogramLoaderOptions) {
    this.#options = options;
    this.#histogram = new Histogram(options.onZoom);
    this.element = this.#histogram.element;
    this.hide();
  }

  hide(): void {
    this.#request?.abort();
    this.#filterKey = '';
    this.element.hidden = true;
  }

  /** Loads the histogram if it belongs to another search, is older than 30 s, or the user asked for a refresh. */
  async load(state: UrlState, { forceRefresh = false } = {}): Promise<void> {
    const { endpoint, onTotal } = this.#options;
    const filterKey = toFilterKey(state);
    const isCurrent = filterKey === this.#filterKey && Date.now() - this.#requestedAt <= MAX_AGE_MS;
    if (endpoint === undefined || (isCurrent && !forceRefresh)) return;
    this.#request?.abort();
    const request = new AbortController();
    this.#request = request;
    if (filterKey !== this.#filterKey) onTotal(undefined);
    this.#filterKey = filterKey;
    this.#requestedAt = Date.now();
    this.element.hidden = false;
    try {
      const result = await runQuery(endpoint, toFilters(state), { forceRefresh, signal: request.signal });
      this.#histogram.render(result, this.#toRange(state, result));
      onTotal(sumCounts(result.rows));
    } catch (error) {
      if (request.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      onTotal(undefined);
      // The list reports an invalid parameter.
      if (error.param === undefined) this.#histogram.showError(error.message);
      else this.hide();
    }
  }

  close(): void {
    this.#request?.abort();
    this.#histogram.close();
  }

  /** The range that the histogram covers, in Unix milliseconds. */
  #toRange({ settings }: UrlState, { ranAt }: QueryResult): { start: number; end: number } {
    const bounds = toBounds(settings);
    const oldest = ranAt - this.#options.toRetentionDays(settings) * 86_400_000;
    // A range chosen in a chart has bounds 1 µs before a bucket start, because the start is exclusive. `Date.parse` truncates them to
    // the millisecond before it, so add 1 ms.
    return {
      start: Math.max(Date.parse(bounds.iso_timestamp_start) + 1 || oldest, oldest),
      end: Math.min(Date.parse(bounds.iso_timestamp_end) + 1 || ranAt, ranAt),
    };
  }
}
