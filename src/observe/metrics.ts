// Events as numbers, in the text format of Prometheus. No label holds a project, a token or a parameter.
import type { Event } from './event.ts';

type Labels = Readonly<Record<string, string>>;

interface Metric {
  readonly type: 'counter' | 'gauge';
  readonly help: string;
  /** By its labels, as they are printed. */
  readonly values: Map<string, number>;
}

/** Every metric there is: its name, type and meaning. */
export const METRICS = {
  dendro_requests_total: ['counter', 'Answers, by route and status.'],
  dendro_records_accepted_total: ['counter', 'Records that were acknowledged.'],
  dendro_records_rejected_total: ['counter', 'Records that were not taken, by reason.'],
  dendro_batches_deduplicated_total: ['counter', 'Batches that were sent again and not stored again.'],
  dendro_records_applied_total: ['counter', 'Records that became visible to queries.'],
  dendro_records_quarantined_total: [
    'counter',
    'Records that the store refused and the quarantine file holds.',
  ],
  dendro_records_expired_total: ['counter', 'Records that were removed past their retention.'],
  dendro_compactions_total: ['counter', 'Times that the store merged parts, to keep queries fast.'],
  dendro_vacuums_total: ['counter', 'Times that the store rewrote a part, to make its file smaller.'],
  dendro_failures_total: [
    'counter',
    'What could not be done and is tried again: spool, fold, seal, quarantine, retention, tidying.',
  ],
  dendro_intake_queue_bytes: ['gauge', 'Bytes that were taken in and cannot be seen by queries yet.'],
  dendro_spool_bytes: ['gauge', 'Bytes of the spool on disk.'],
  dendro_cache_bytes: ['gauge', 'Bytes of cached answers.'],
  dendro_start_time_seconds: ['gauge', 'When the program started, Unix seconds.'],
  dendro_resident_memory_bytes: ['gauge', 'Resident memory of the process.'],
  dendro_cpu_seconds_total: ['counter', 'Time on a core that the process used.'],
  dendro_info: ['gauge', 'Always 1; the version is a label.'],
} as const satisfies Record<string, readonly [Metric['type'], string]>;

export type MetricName = keyof typeof METRICS;

/** What is read when somebody asks, rather than counted. */
export type Gauges = readonly (readonly [MetricName, number, Labels?])[];

export class Metrics {
  readonly #metrics = new Map<MetricName, Metric>();
  /** By route and status; `render` prints them among the others. */
  readonly #answered = new Map<string, Map<number, number>>();

  constructor() {
    for (const [name, [type, help]] of Object.entries(METRICS))
      this.#metrics.set(name as MetricName, { type, help, values: new Map() });
  }

  record(event: Event): void {
    switch (event.type) {
      case 'request_completed':
        this.#noteAnswered(event.route, event.status);
        break;
      case 'batch_received':
        this.#noteTaken(event);
        break;
      case 'records_applied':
        this.#add('dendro_records_applied_total', event.count, { kind: event.kind });
        break;
      case 'record_quarantined':
        this.#add('dendro_records_quarantined_total', 1, { kind: event.kind });
        break;
      case 'records_expired':
        this.#add('dendro_records_expired_total', event.count, {});
        break;
      case 'compacted':
        this.#add('dendro_compactions_total', 1, {});
        break;
      case 'vacuumed':
        this.#add('dendro_vacuums_total', 1, {});
        break;
      case 'spool_write_failed':
      case 'apply_failed':
      case 'flush_failed':
      case 'quarantine_failed':
      case 'retention_failed':
      case 'compaction_failed':
      case 'vacuum_failed':
        this.#add('dendro_failures_total', 1, { operation: event.type.replace('_failed', '') });
    }
  }

  /** Labels are put together when somebody wants to read them: this happens for every request. */
  #noteAnswered(route: string, status: number): void {
    const byStatus = this.#answered.get(route);
    if (byStatus === undefined) this.#answered.set(route, new Map([[status, 1]]));
    else byStatus.set(status, (byStatus.get(status) ?? 0) + 1);
  }

  #noteTaken({ kind, accepted, rejected, repeated }: Extract<Event, { type: 'batch_received' }>): void {
    if (repeated) this.#add('dendro_batches_deduplicated_total', 1, { kind });
    else this.#add('dendro_records_accepted_total', accepted, { kind });
    for (const [code, count] of Object.entries(rejected))
      this.#add('dendro_records_rejected_total', count, { kind, code });
  }

  /** The text that Prometheus reads. */
  render(gauges: Gauges): string {
    for (const [route, byStatus] of this.#answered)
      for (const [status, count] of byStatus)
        this.#set('dendro_requests_total', count, { route, status: String(status) });
    for (const [name, value, labels = {}] of gauges) this.#set(name, value, labels);
    let text = '';
    for (const [name, { type, help, values }] of this.#metrics) {
      text += `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n`;
      for (const [labels, value] of values) text += `${name}${labels} ${value}\n`;
    }
    return text;
  }

  #set(name: MetricName, value: number, labels: Labels): void {
    this.#metrics.get(name)?.values.set(print(labels), value);
  }

  #add(name: MetricName, count: number, labels: Labels): void {
    const values = this.#metrics.get(name)?.values;
    const key = print(labels);
    values?.set(key, (values.get(key) ?? 0) + count);
  }
}

function print(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${value}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}
