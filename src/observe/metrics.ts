// Counts events and renders the Prometheus text format. No label contains a project, a token or a parameter value.
import { collectDefaultMetrics, Registry } from 'prom-client';
import { REFUSAL_REASONS } from '../domain/errors.ts';
import { LOG_KINDS } from '../domain/log-columns.ts';
import { CACHE_OUTCOMES, definitionOf, EVENTS, type Event } from './event.ts';
import { METRICS, type MetricDefinition, type MetricName } from './metric-definitions.ts';

type Labels = Readonly<Record<string, string>>;

/** Adds to a counter, or an observation to a histogram. */
export type AddToMetric = (name: MetricName, value: number, labels?: Labels) => void;

/** Values that are read when the metrics are rendered (gauges, and counters kept elsewhere), not counted from events. */
export type SampledValues = readonly (readonly [MetricName, number, Labels?])[];

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

/** The series that count requests with the same route, endpoint, status and cache outcome. */
interface RequestSeries {
  readonly responses: Series;
  readonly durations: Series;
  /** Undefined if the route has no endpoint. */
  readonly outcomes: Series | undefined;
}

type RequestCompleted = Extract<Event, { type: 'request_completed' }>;

export class Metrics {
  readonly #metrics = new Map<MetricName, Metric>();
  /** By route, endpoint, and status with outcome. Finding series by their labels, or by one long key, would slow down a cache hit. */
  readonly #requests = new Map<string, Map<string | undefined, Map<number, RequestSeries>>>();
  /** The metrics of the process. */
  readonly #registry = new Registry();

  /** Metrics of a store other than `store` do not exist. `rejectCodes` is defined in another module. */
  constructor({ store, rejectCodes }: { readonly store: string; readonly rejectCodes: readonly string[] }) {
    for (const [name, definition] of Object.entries<MetricDefinition>(METRICS))
      if (definition.store === undefined || definition.store === store)
        this.#metrics.set(name as MetricName, new Metric(name, definition));
    this.#createKnownSeries({ kind: LOG_KINDS, reason: REFUSAL_REASONS, code: rejectCodes });
    collectDefaultMetrics({ register: this.#registry });
    for (const name of INVALID_METRICS) this.#registry.removeSingleMetric(name);
  }

  /** Series whose labels are known in advance exist from the start, with the value 0: a rate needs two samples. */
  #createKnownSeries(valuesByLabel: Readonly<Record<string, readonly string[]>>): void {
    for (const { definition, series } of this.#metrics.values()) {
      const areKnown = definition.labels.every(label => label in valuesByLabel);
      if (areKnown && definition.type !== 'gauge')
        listLabels(definition.labels, valuesByLabel).forEach(series);
    }
    for (const { failureOf: operation, byKind } of Object.values<{ failureOf?: string; byKind?: true }>(
      EVENTS,
    ))
      if (operation !== undefined)
        for (const kind of byKind ? LOG_KINDS : [''])
          this.#add('dendro_failures_total', 0, { operation, kind });
  }

  /** Creates the series of new endpoints, with the value 0. Those of removed endpoints stay: counters must not disappear. */
  addEndpoints(names: readonly string[]): void {
    for (const endpoint of names) {
      this.#seriesOf('dendro_query_queue_seconds', { endpoint });
      this.#seriesOf('dendro_query_store_seconds', { endpoint });
      for (const status_class of ['2xx', '3xx', '4xx', '5xx']) {
        this.#seriesOf('dendro_http_request_duration_seconds', { endpoint, status_class });
        // Only combinations that can occur: a result has a cache outcome, and a failed request has `none`.
        const hasResult = status_class < '4xx';
        for (const cache of CACHE_OUTCOMES.filter(outcome => hasResult === (outcome !== 'none')))
          this.#seriesOf('dendro_endpoint_requests_total', { endpoint, status_class, cache });
      }
    }
  }

  record(event: Event): void {
    if (event.type === 'request_completed') {
      this.#countRequest(event);
      return;
    }
    const { count, failureOf: operation, byKind } = definitionOf(event);
    count?.(event, this.#add);
    if (operation === undefined) return;
    const kind = byKind && 'kind' in event ? event.kind : ''; // for Prometheus, an empty label is the same as no label
    this.#add('dendro_failures_total', 1, { operation, kind });
  }

  #countRequest(request: RequestCompleted): void {
    const { route, endpoint, status, outcome } = request;
    const byEndpoint = getOrCreate(this.#requests, route, () => new Map());
    const byStatus = getOrCreate(byEndpoint, endpoint, () => new Map());
    const statusAndOutcome = 10 * status + CACHE_OUTCOMES.indexOf(outcome);
    const series = getOrCreate(byStatus, statusAndOutcome, () => this.#findRequestSeries(request));
    series.responses.add(1);
    series.durations.add(request.durationMs / 1000);
    series.outcomes?.add(1);
  }

  #findRequestSeries({ route, endpoint, status, outcome: cache }: RequestCompleted): RequestSeries {
    const status_class = `${Math.floor(status / 100)}xx`;
    return {
      responses: this.#seriesOf('dendro_requests_total', { route, status: String(status) }),
      durations: this.#seriesOf('dendro_http_request_duration_seconds', {
        endpoint: endpoint ?? route,
        status_class,
      }),
      outcomes:
        endpoint === undefined
          ? undefined
          : this.#seriesOf('dendro_endpoint_requests_total', { endpoint, status_class, cache }),
    };
  }

  /** Removes the gauge values of earlier calls: a combination of labels that is not in `sampled` is not rendered. */
  async render(sampled: SampledValues): Promise<string> {
    for (const metric of this.#metrics.values()) if (metric.definition.type === 'gauge') metric.clear();
    for (const [name, value, labels] of sampled) this.#seriesOf(name, labels).value = value;
    return (
      [...this.#metrics.values()].map(metric => metric.render()).join('\n') + (await this.#registry.metrics())
    );
  }

  /** A metric of the other store is counted, but not rendered. */
  #seriesOf(name: MetricName, labels: Labels = {}): Series {
    return (this.#metrics.get(name) ?? new Metric(name, METRICS[name])).series(labels);
  }

  readonly #add: AddToMetric = (name, value, labels) => this.#seriesOf(name, labels).add(value);
}

/** From a cache hit to the default time limit of a query, in seconds. */
const REQUEST_BUCKETS = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
/** For flushes and compactions, in seconds. */
const BACKGROUND_BUCKETS = [0.01, 0.05, 0.1, 0.5, 1, 5, 10, 30, 60, 300, 900];

class Metric {
  readonly name: string;
  readonly definition: MetricDefinition;
  /** By the values of their labels. */
  readonly #series = new Map<string, Series>();
  readonly #bounds: readonly number[] | undefined;

  constructor(name: string, definition: MetricDefinition) {
    this.name = name;
    this.definition = definition;
    if (definition.type === 'histogram')
      this.#bounds = /flush|compaction/.test(name) ? BACKGROUND_BUCKETS : REQUEST_BUCKETS;
    this.clear();
  }

  clear(): void {
    this.#series.clear();
    if (this.definition.labels.length === 0) this.series({});
  }

  /** The series with these labels. If it is new, its value is 0. */
  readonly series = (labels: Labels): Series => {
    return getOrCreate(this.#series, JSON.stringify(labels), () => new Series(labels, this.#bounds));
  };

  render(): string {
    const { name, definition } = this;
    const lines = [...this.#series.values()].flatMap(series => series.render(name));
    return [`# HELP ${name} ${definition.help}`, `# TYPE ${name} ${definition.type}`, ...lines, ''].join(
      '\n',
    );
  }
}

/** The value of a metric for one combination of labels. Of a histogram: the sum of the observations, and their number by bucket. */
class Series {
  value = 0;
  readonly #labels: Labels;
  readonly #bounds: readonly number[] | undefined;
  /** The last bucket has no upper bound. */
  readonly #counts: number[];

  constructor(labels: Labels, bounds: readonly number[] | undefined) {
    this.#labels = labels;
    this.#bounds = bounds;
    this.#counts = bounds === undefined ? [] : [...bounds, 0].fill(0);
  }

  add(value: number): void {
    this.value += value;
    const bounds = this.#bounds;
    if (bounds === undefined) return;
    let bucket = 0;
    while (bucket < bounds.length && value > (bounds[bucket] as number)) bucket++;
    this.#counts[bucket] = (this.#counts[bucket] as number) + 1;
  }

  render(name: string): string[] {
    const bounds = this.#bounds;
    if (bounds === undefined) return [`${name}${formatLabels(this.#labels)} ${this.value}`];
    let count = 0;
    const buckets = this.#counts.map((inBucket, index) => {
      count += inBucket; // each bucket includes the smaller ones
      return `${name}_bucket${formatLabels({ ...this.#labels, le: String(bounds[index] ?? '+Inf') })} ${count}`;
    });
    const labels = formatLabels(this.#labels);
    return [...buckets, `${name}_sum${labels} ${this.value}`, `${name}_count${labels} ${count}`];
  }
}

function getOrCreate<K, V>(map: Map<K, V>, key: K, create: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = create();
    map.set(key, value);
  }
  return value;
}

/** JSON escapes backslashes, quotes and line breaks as the text format does. */
function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

/** All combinations of values for the labels. */
function listLabels(
  [label, ...others]: readonly string[],
  valuesByLabel: Readonly<Record<string, readonly string[]>>,
): Labels[] {
  if (label === undefined) return [{}];
  const rest = listLabels(others, valuesByLabel);
  return (valuesByLabel[label] ?? []).flatMap(value => rest.map(labels => ({ [label]: value, ...labels })));
}
