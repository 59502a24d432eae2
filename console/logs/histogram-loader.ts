// Loads the histogram of a search. The list is refreshed every few seconds, the histogram less often, because it counts all records
// of the time range.
import { ApiError, type QueryResult, runQuery } from '../api/client.ts';
import type { TimeRange } from '../chart/chart-data.ts';
import { microsToIso } from '../format.ts';
import { ALL, toSpan } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import { Histogram, sumCounts } from './histogram.ts';
import { readMicros } from './record-fields.ts';
import { toFilterKey, toFilters } from './search-state.ts';

export interface HistogramLoaderOptions {
  /** Undefined if the token cannot call logs.histogram. */
  readonly endpoint: string | undefined;
  onZoom(range: TimeRange): void;
  /** The user clicked a bar. */
  onOpenBucket(bucket: TimeRange, category: string | undefined): void;
  /** Reports the number of records; undefined if it is unknown. */
  onTotal?(total: number | undefined): void;
  /** The title of the chart, by default the number of records. */
  title?(total: number): string;
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
    this.#histogram = new Histogram(options);
    this.element = this.#histogram.element;
    this.hide();
  }

  /** What it shows does not appear again. */
  hide(): void {
    this.#request?.abort();
    this.#filterKey = '';
    this.element.hidden = true;
    this.element.classList.add('histogram-empty');
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
    if (filterKey !== this.#filterKey) {
      onTotal?.(undefined);
      this.element.setAttribute('aria-busy', 'true');
    }
    this.#filterKey = filterKey;
    this.#requestedAt = Date.now();
    this.element.hidden = false;
    try {
      const options = { forceRefresh, signal: request.signal };
      let result = await runQuery(endpoint, toFilters(state), options);
      const start = findShortStart(state, result);
      if (start !== undefined)
        result = await runQuery(endpoint, { ...toFilters(state), iso_timestamp_start: start }, options);
      this.#histogram.render(result, toSpan(state.settings, result.ranAt));
      onTotal?.(sumCounts(result.rows));
    } catch (error) {
      if (request.signal.aborted) return;
      if (!(error instanceof ApiError)) throw error;
      onTotal?.(undefined);
      // The list reports an invalid parameter.
      if (error.param === undefined) this.#histogram.showError(error.message);
      else this.hide();
    } finally {
      if (!request.signal.aborted) {
        this.element.classList.remove('histogram-empty');
        this.element.removeAttribute('aria-busy');
      }
    }
  }

  close(): void {
    this.#request?.abort();
    this.#histogram.close();
  }
}

/** With fewer buckets than this, the bars say little about when something happened. */
const MIN_BUCKETS = 24;

/**
 * The range of all records begins at the limit of the retention, and the size of its buckets fits that. If the records are all newer,
 * a range that starts with them has shorter buckets. Undefined if the buckets are short enough.
 */
function findShortStart({ settings }: UrlState, { rows, ranAt }: QueryResult): string | undefined {
  const [first] = rows;
  if (settings['range'] !== ALL || first === undefined) return undefined;
  const seconds = ranAt / 1000 - readMicros(first) / 1e6;
  return seconds < MIN_BUCKETS * Number(first['bucket_seconds'])
    ? microsToIso(readMicros(first) - 1)
    : undefined;
}
