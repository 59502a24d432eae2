// Counts events and renders the Prometheus text format. No label contains a project, a token or a parameter value.
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { REFUSAL_REASONS } from '../domain/errors.ts';
import { LOG_KINDS } from '../domain/log-columns.ts';
import { CACHE_OUTCOMES, type Event } from './event.ts';
import { Histogram, type HistogramSeries, type Labels } from './histogram.ts';
import { METRICS, type MetricName } from './metric-definitions.ts';

/** Label values that are defined in other modules. */
export interface LabelValues {
  /** The name of the store. Metrics of the other store do not exist. */
  readonly store: string;
  readonly rejectCodes: readonly string[];
}

/** Values that are read when the metrics are rendered (gauges, and counters kept elsewhere), not counted from events. */
export type SampledValues = readonly (readonly [MetricName, number, Labels?])[];

/** From a cache hit to the default time limit of a query, in seconds. */
const REQUEST_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** For flushes and compactions, in seconds. */
const BACKGROUND_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900];

/**
 * Metrics of prom-client that are removed because they are invalid. The first three are gauges, but end in _total like counters;
 * nodejs_active_handles etc. have the same values. The others are NaN if metrics are read twice in quick succession.
 */
const INVALID_METRICS = [
  'nodejs_active_handles_total',
  'nodejs_active_requests_total',
  'nodejs_active_resources_total',
  'nodejs_eventloop_lag_mean_seconds',
  'nodejs_eventloop_lag_stddev_seconds',
];

const STATUS_CLASSES = ['', '1xx', '2xx', '3xx', '4xx', '5xx'];
/** A 1xx response is not final, so its class has no series. */
const FIRST_FINAL_CLASS = 2;

/** The requests of an endpoint or route, by the first digit of their status. */
interface RequestSeries {
  readonly durations: HistogramSeries[];
  /** Only for endpoints: by status class, then by cache outcome. */
  readonly outcomes: Record<CacheOutcome, number>[];
}

type CacheOutcome = (typeof CACHE_OUTCOMES)[number];
type RequestCompleted = Extract<Event, { type: 'request_completed' }>;

export class Metrics {
  readonly #registry = new Registry();
  readonly #counters = new Map<MetricName, Counter>();
  readonly #gauges = new Map<MetricName, Gauge>();
  readonly #histograms = new Map<MetricName, Histogram>();
  /** By route and status. Not counted by prom-client, which hashes the labels each time: that would slow down a cache hit. */
  readonly #responses = new Map<string, Map<number, number>>();
  /** By endpoint or, for other requests, by route. */
  readonly #requests = new Map<string, RequestSeries>();
  readonly #queueWaits = new Map<string, HistogramSeries>();
  readonly #storeTimes = new Map<string, HistogramSeries>();
  readonly #flushes = new Map<string, HistogramSeries>();
  readonly #compactions: HistogramSeries | undefined;

  constructor({ store, rejectCodes }: LabelValues) {
    for (const [name, definition] of Object.entries(METRICS))
      if (!('store' in definition) || definition.store === store) this.#create(name as MetricName);
    if (store === 'duckdb') {
      for (const kind of LOG_KINDS)
        this.#flushes.set(kind, this.#addSeries('dendro_flush_duration_seconds', { kind }));
      this.#compactions = this.#addSeries('dendro_compaction_duration_seconds', {});
    }
    for (const [name, labels] of listFixedLabels(rejectCodes)) this.#add(name, 0, labels);
    collectDefaultMetrics({ register: this.#registry });
    for (const name of INVALID_METRICS) this.#registry.removeSingleMetric(name);
  }

  /** Creates the metrics of new endpoints, with the value 0. Those of removed endpoints stay: counters must not disappear. */
  addEndpoints(names: readonly string[]): void {
    for (const endpoint of names.filter(name => !this.#queueWaits.has(name))) {
      if (!this.#requests.has(endpoint)) this.#requests.set(endpoint, this.#createRequestSeries(endpoint));
      this.#queueWaits.set(endpoint, this.#addSeries('dendro_query_queue_seconds', { endpoint }));
      this.#storeTimes.set(endpoint, this.#addSeries('dendro_query_store_seconds', { endpoint }));
    }
  }

  record(event: Event): void {
    switch (event.type) {
      case 'request_completed':
        this.#countRequest(event);
        break;
      case 'query_completed':
        this.#queueWaits.get(event.endpoint)?.observe(event.queuedMs / 1000);
        this.#storeTimes.get(event.endpoint)?.observe(event.executedMs / 1000);
        break;
      case 'token_refused':
        this.#add('dendro_auth_failures_total', 1, { reason: event.reason });
        break;
      case 'batch_completed':
        this.#countBatch(event);
        break;
      case 'records_quarantined':
        this.#add('dendro_records_quarantined_total', event.count);
        break;
      case 'records_applied':
        this.#add('dendro_records_applied_total', event.count, { kind: event.kind });
        break;
      case 'record_rejected_by_store':
        this.#add('dendro_records_rejected_by_store_total', 1, { kind: event.kind });
        break;
      default:
        this.#countBackgroundWork(event);
    }
  }

  #countBackgroundWork(event: Event): void {
    switch (event.type) {
      case 'flushed':
        this.#flushes.get(event.kind)?.observe(event.durationMs / 1000);
        break;
      case 'records_expired':
        this.#add('dendro_records_expired_total', event.count);
        break;
      case 'records_evicted':
        this.#add('dendro_records_evicted_total', event.count);
        break;
      case 'compacted':
        this.#add('dendro_compactions_total', 1);
        this.#compactions?.observe(event.durationMs / 1000);
        break;
      case 'spool_damaged':
      case 'spool_incomplete':
        this.#countFailure('spool_read_failed');
        break;
      case 'store_missing':
      case 'part_set_aside':
        this.#countFailure('store_read_failed');
        break;
      case 'apply_failed':
      case 'flush_failed':
      case 'verification_failed':
        this.#countFailure(event.type, event.kind);
        break;
      case 'spool_write_failed':
      case 'spool_cleanup_failed':
      case 'quarantine_failed':
      case 'retention_failed':
      case 'eviction_failed':
      case 'erase_failed':
      case 'compaction_failed':
        this.#countFailure(event.type);
    }
  }

  /** For Prometheus, an empty label is the same as no label. */
  #countFailure(type: `${string}_failed`, kind = ''): void {
    this.#add('dendro_failures_total', 1, { operation: type.replace('_failed', ''), kind });
  }

  #countRequest({ route, endpoint, status, outcome, durationMs }: RequestCompleted): void {
    const byStatus = this.#responses.get(route);
    if (byStatus === undefined) this.#responses.set(route, new Map([[status, 1]]));
    else byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
    const name = endpoint ?? route;
    let series = this.#requests.get(name);
    if (series === undefined) {
      series = this.#createRequestSeries(name);
      this.#requests.set(name, series);
    }
    const digit = Math.floor(status / 100);
    series.durations[digit]?.observe(durationMs / 1000);
    const outcomes = endpoint === undefined ? undefined : series.outcomes[digit];
    if (outcomes !== undefined) outcomes[outcome]++;
  }

  #createRequestSeries(endpointOrRoute: string): RequestSeries {
    const durations: HistogramSeries[] = [];
    const outcomes: Record<CacheOutcome, number>[] = [];
    for (let digit = FIRST_FINAL_CLASS; digit < STATUS_CLASSES.length; digit++) {
      const labels = { endpoint: endpointOrRoute, status_class: STATUS_CLASSES[digit] ?? '' };
      durations[digit] = this.#addSeries('dendro_http_request_duration_seconds', labels);
      outcomes[digit] = { hit: 0, miss: 0, collapsed: 0, request: 0, bypass: 0, none: 0 };
    }
    return { durations, outcomes };
  }

  #countBatch({
    kind,
    bytes,
    accepted,
    rejected,
    deduplicated,
  }: Extract<Event, { type: 'batch_completed' }>): void {
    this.#add('dendro_intake_requests_total', 1, { kind });
    this.#add('dendro_intake_bytes_total', bytes, { kind });
    if (deduplicated) this.#add('dendro_batches_deduplicated_total', 1, { kind });
    else this.#add('dendro_records_accepted_total', accepted, { kind });
    for (const [code, count] of Object.entries(rejected))
      this.#add('dendro_records_rejected_total', count, { kind, code });
  }

  /** Removes the gauge values of earlier calls: a combination of labels that is not in `sampled` is not rendered. */
  async render(sampled: SampledValues): Promise<string> {
    this.#copyRequestCounts();
    for (const gauge of this.#gauges.values()) gauge.reset();
    for (const [name, value, labels = {}] of sampled) {
      this.#gauges.get(name)?.set(labels, value);
      const counter = this.#counters.get(name);
      counter?.reset();
      counter?.inc(labels, value);
    }
    return this.#registry.metrics();
  }

  #copyRequestCounts(): void {
    this.#counters.get('dendro_requests_total')?.reset();
    for (const [route, byStatus] of this.#responses)
      for (const [status, count] of byStatus)
        this.#add('dendro_requests_total', count, { route, status: String(status) });
    this.#counters.get('dendro_endpoint_requests_total')?.reset();
    for (const endpoint of this.#queueWaits.keys()) this.#copyOutcomes(endpoint); // `#requests` also has routes
  }

  /**
   * Exports a zero only for combinations that can occur: a result (status below 400) has a cache outcome, and a failed request has
   * `none`. Any other combination is exported only if it was counted.
   */
  #copyOutcomes(endpoint: string): void {
    for (const [digit, counts] of this.#requests.get(endpoint)?.outcomes.entries() ?? []) {
      const hasResult = digit < 4;
      for (const cache of CACHE_OUTCOMES)
        if (counts !== undefined && (hasResult === (cache !== 'none') || counts[cache] > 0))
          this.#add('dendro_endpoint_requests_total', counts[cache], {
            endpoint,
            status_class: STATUS_CLASSES[digit] ?? '',
            cache,
          });
    }
  }

  #add(name: MetricName, count: number, labels: Labels = {}): void {
    this.#counters.get(name)?.inc(labels, count);
  }

  #addSeries(name: MetricName, labels: Labels): HistogramSeries {
    const histogram = this.#histograms.get(name);
    if (histogram === undefined) throw new Error(`${name} is not a histogram`);
    return histogram.addSeries(labels);
  }

  #create(name: MetricName): void {
    const { type, help, labels } = METRICS[name];
    const options = { name, help, labelNames: [...labels], registers: [this.#registry] };
    if (type === 'counter') this.#counters.set(name, new Counter(options));
    else if (type === 'gauge') this.#gauges.set(name, new Gauge(options));
    else this.#createHistogram(name, help);
  }

  #createHistogram(name: MetricName, help: string): void {
    const isOfRequests = name === 'dendro_http_request_duration_seconds' || name.startsWith('dendro_query_');
    const histogram = new Histogram(name, help, isOfRequests ? REQUEST_BUCKETS : BACKGROUND_BUCKETS);
    this.#histograms.set(name, histogram);
    // The registry uses only `name` and `get()`, but its type demands a class of prom-client.
    this.#registry.registerMetric(histogram as unknown as Counter);
  }
}

/** The label sets that are known in advance. Their counters exist from the start with the value 0: a rate needs two samples. */
function listFixedLabels(rejectCodes: readonly string[]): [MetricName, Labels][] {
  const fixed: [MetricName, Labels][] = [];
  for (const kind of LOG_KINDS) {
    for (const name of BY_KIND) fixed.push([name, { kind }]);
    for (const code of rejectCodes) fixed.push(['dendro_records_rejected_total', { kind, code }]);
    for (const operation of ['apply', 'flush', 'verification'])
      fixed.push(['dendro_failures_total', { operation, kind }]);
  }
  for (const operation of OPERATIONS) fixed.push(['dendro_failures_total', { operation, kind: '' }]);
  for (const reason of REFUSAL_REASONS) fixed.push(['dendro_auth_failures_total', { reason }]);
  return fixed;
}

/** Counters whose only label is the log kind. */
const BY_KIND: readonly MetricName[] = [
  'dendro_intake_requests_total',
  'dendro_intake_bytes_total',
  'dendro_records_accepted_total',
  'dendro_records_applied_total',
  'dendro_records_rejected_by_store_total',
  'dendro_batches_deduplicated_total',
];

/** Operations whose failures are counted without a log kind. */
const OPERATIONS = [
  'spool_write',
  'spool_read',
  'store_read',
  'spool_cleanup',
  'quarantine',
  'retention',
  'eviction',
  'erase',
  'compaction',
];
