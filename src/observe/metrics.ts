// Counts events and renders the Prometheus text format. No label contains a project, a token or a parameter value.
import type { Event } from './event.ts';

type Labels = Readonly<Record<string, string>>;

interface Metric {
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  /** By formatted labels. */
  readonly values: Map<string, number>;
}

/** All metrics: name, type and help text. */
export const METRICS = {
  dendro_requests_total: ['counter', 'HTTP responses by route and status.'],
  dendro_records_accepted_total: ['counter', 'Log records accepted and acknowledged.'],
  dendro_records_rejected_total: ['counter', 'Log records rejected by intake, by error code.'],
  dendro_batches_deduplicated_total: ['counter', 'Batches that were sent again and not stored twice.'],
  dendro_records_applied_total: ['counter', 'Records applied to the store and visible to queries.'],
  dendro_records_rejected_by_store_total: [
    'counter',
    'Records that the store rejected, kept in the quarantine file.',
  ],
  dendro_records_expired_total: ['counter', 'Records removed because they exceeded the retention period.'],
  dendro_records_evicted_total: ['counter', 'The oldest records, removed because of --max-disk.'],
  dendro_compactions_total: ['counter', 'Compactions: the store merged parts.'],
  dendro_vacuums_total: [
    'counter',
    'Vacuum runs: the store moved one part towards the start of its file, so that the file can shrink.',
  ],
  dendro_failures_total: [
    'counter',
    'Failed background operations, by operation: spool_read, spool_write, spool_cleanup, apply, flush, quarantine, retention, eviction, compaction, vacuum. apply and flush have the log kind, too.',
  ],
  dendro_intake_queue_bytes: ['gauge', 'Bytes received by intake and not yet visible to queries.'],
  dendro_spool_bytes: ['gauge', 'Size of the spool on disk in bytes.'],
  dendro_cache_bytes: ['gauge', 'Size of the cached results in bytes.'],
  dendro_unsent_bytes: ['gauge', 'Size of the responses that clients have not read yet, in bytes.'],
  dendro_start_time_seconds: ['gauge', 'Start time of the process in Unix seconds.'],
  dendro_resident_memory_bytes: ['gauge', 'Resident memory of the process in bytes.'],
  dendro_cpu_seconds_total: ['counter', 'CPU time used by the process in seconds.'],
  dendro_info: ['gauge', 'Always 1. The label version has the version.'],
} as const satisfies Record<string, readonly [Metric['type'], string]>;

export type MetricName = keyof typeof METRICS;

/** Values that are read when the metrics are rendered (gauges, and counters kept elsewhere), not counted from events. */
export type SampledValues = readonly (readonly [MetricName, number, Labels?])[];

export class Metrics {
  readonly #metrics = new Map<MetricName, Metric>();
  /** Requests by route and status. Kept apart, because building labels for every request would slow down a cache hit. */
  readonly #requests = new Map<string, Map<number, number>>();

  constructor() {
    for (const [name, [type, help]] of Object.entries(METRICS))
      this.#metrics.set(name as MetricName, { type, help, values: new Map() });
  }

  record(event: Event): void {
    switch (event.type) {
      case 'request_completed':
        this.#countRequest(event.route, event.status);
        break;
      case 'batch_completed':
        this.#countBatch(event);
        break;
      case 'records_applied':
        this.#add('dendro_records_applied_total', event.count, { kind: event.kind });
        break;
      case 'record_rejected_by_store':
        this.#add('dendro_records_rejected_by_store_total', 1, { kind: event.kind });
        break;
      case 'records_expired':
        this.#add('dendro_records_expired_total', event.count, {});
        break;
      case 'records_evicted':
        this.#add('dendro_records_evicted_total', event.count, {});
        break;
      case 'compacted':
        this.#add('dendro_compactions_total', 1, {});
        break;
      case 'vacuumed':
        this.#add('dendro_vacuums_total', 1, {});
        break;
      case 'apply_failed':
      case 'flush_failed':
        this.#countFailure(event.type, { kind: event.kind });
        break;
      case 'spool_damaged':
      case 'spool_incomplete':
        this.#countFailure('spool_read_failed');
        break;
      case 'spool_write_failed':
      case 'spool_cleanup_failed':
      case 'quarantine_failed':
      case 'retention_failed':
      case 'eviction_failed':
      case 'compaction_failed':
      case 'vacuum_failed':
        this.#countFailure(event.type);
    }
  }

  #countFailure(type: `${string}_failed`, labels: Labels = {}): void {
    this.#add('dendro_failures_total', 1, { operation: type.replace('_failed', ''), ...labels });
  }

  #countRequest(route: string, status: number): void {
    const byStatus = this.#requests.get(route);
    if (byStatus === undefined) this.#requests.set(route, new Map([[status, 1]]));
    else byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
  }

  #countBatch({ kind, accepted, rejected, deduplicated }: Extract<Event, { type: 'batch_completed' }>): void {
    if (deduplicated) this.#add('dendro_batches_deduplicated_total', 1, { kind });
    else this.#add('dendro_records_accepted_total', accepted, { kind });
    for (const [code, count] of Object.entries(rejected))
      this.#add('dendro_records_rejected_total', count, { kind, code });
  }

  render(sampled: SampledValues): string {
    for (const [route, byStatus] of this.#requests)
      for (const [status, count] of byStatus)
        this.#set('dendro_requests_total', count, { route, status: String(status) });
    for (const [name, value, labels = {}] of sampled) this.#set(name, value, labels);
    let text = '';
    for (const [name, { type, help, values }] of this.#metrics) {
      text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
      for (const [labels, value] of values) text += `${name}${labels} ${value}\n`;
    }
    return text;
  }

  #set(name: MetricName, value: number, labels: Labels): void {
    this.#metrics.get(name)?.values.set(formatLabels(labels), value);
  }

  #add(name: MetricName, count: number, labels: Labels): void {
    const values = this.#metrics.get(name)?.values;
    const key = formatLabels(labels);
    values?.set(key, (values.get(key) ?? 0) + count);
  }
}

function formatLabels(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}
