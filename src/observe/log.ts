// Writes events as log lines: `listening` to standard output, everything else to standard error. A line says what happened, then
// why.
import { isProgrammingError } from '../domain/errors.ts';
import { systemTimer, type Timer } from '../system/timer.ts';
import type { Event, Observe } from './event.ts';
import { LogThrottle } from './log-throttle.ts';

/** Events that repeat for as long as their cause lasts. */
const THROTTLED: readonly Event['type'][] = [
  'store_query_failed',
  'apply_failed',
  'flush_failed',
  'spool_cleanup_failed',
  'spool_write_failed',
  'quarantine_failed',
  'retention_failed',
  'eviction_failed',
];

export function logTo(
  output: NodeJS.WritableStream,
  errors: NodeJS.WritableStream,
  timer: Pick<Timer, 'now'> = systemTimer,
): Observe {
  const throttle = new LogThrottle(() => timer.now());
  return event => {
    if (event.type === 'listening') output.write(`${event.listener}: listening on ${event.url}\n`);
    if (event.type === 'listening' || isMetricOnly(event)) return;
    if (event.type === 'apply_recovered') throttle.reset(`apply_failed ${event.kind}`);
    const suppressedBefore = THROTTLED.includes(event.type) ? throttle.admit(throttleName(event)) : 0;
    if (suppressedBefore === undefined) return; // this one is suppressed, too
    const note = suppressedBefore === 0 ? '' : ` (${suppressedBefore} similar messages suppressed)`;
    errors.write(`${describe(event)}${note}\n`);
  };
}

/** Each kind has its own series, so that the failure of one kind does not hide that of another. */
function throttleName(event: Event): string {
  return 'kind' in event ? `${event.type} ${event.kind}` : event.type;
}

const METRIC_ONLY = [
  'request_completed',
  'query_completed',
  'token_refused',
  'batch_completed',
  'records_quarantined',
  'flushed',
  'records_applied',
  'compacted',
  'vacuumed',
] as const satisfies Event['type'][];

/** Routine events, counted by metrics.ts and not logged. */
type MetricOnlyEvent = Extract<Event, { type: (typeof METRIC_ONLY)[number] }>;

function isMetricOnly(event: Event): event is MetricOnlyEvent {
  return METRIC_ONLY.some(type => type === event.type);
}

function describe(event: Exclude<Event, MetricOnlyEvent | { type: 'listening' }>): string {
  switch (event.type) {
    case 'started':
      return `dendro ${event.version} started: store ${event.store}, data directory ${event.dataDirectory}, public ${event.publicUrl}, internal ${event.internalUrl}`;
    case 'stopping':
      return `received ${event.signal}; finishing running requests, then stopping`;
    case 'stopped':
      return 'stopped';
    case 'stop_timed_out':
      return `not stopped within ${event.seconds} s, because a query does not react to its cancellation; killing the process. No acknowledged data is lost`;
    case 'tokens_read':
      return `tokens reloaded: ${event.count}`;
    case 'tokens_unreadable':
      return `TOKENS FILE CANNOT BE READ; the last valid tokens stay active: ${messageOf(event.error)}`;
    case 'request_failed':
      return `request ${event.id}: ${event.route} failed: ${event.error instanceof Error ? (event.error.stack ?? event.error.message) : event.error}`;
    case 'store_query_failed':
      return `request ${event.id}: the store query failed: ${messageOf(event.error)}`;
    case 'record_rejected_by_store':
      return `the store rejected a record of kind ${event.kind}; it is in the quarantine file: ${event.reason}`;
    case 'apply_failed':
      return `applying records of kind ${event.kind} to the store failed; they stay in the spool and are retried: ${messageOf(event.error)}`;
    case 'apply_recovered':
      return `applying records of kind ${event.kind} works again after ${event.failures} failed attempts`;
    case 'spool_cleanup_failed':
      return `deleting files of the spool that are no longer needed failed; it is retried: ${messageOf(event.error)}`;
    case 'flush_failed':
      return `flushing records of kind ${event.kind} failed; they stay in memory and in the spool: ${messageOf(event.error)}`;
    case 'store_unavailable':
      return `store unavailable; queries fail and records wait in the spool: ${messageOf(causeOf(event.error))}`;
    case 'store_available':
      return 'store available; queries are served';
    case 'spool_write_failed':
      return `writing to the spool failed; the records were not accepted: ${messageOf(event.error)}`;
    case 'spool_truncated':
      return `removed an unfinished write of ${event.invalidBytes} bytes from the end of the spool; it was not acknowledged`;
    case 'spool_damaged':
      return describeDamage(event);
    case 'spool_incomplete':
      return `SPOOL INCOMPLETE: files of ${event.directory} are missing${describeKindsAhead(event.kinds)}. Acknowledged records that were not in the store yet may be lost. New records are stored as usual`;
    case 'idempotency_log_damaged':
      return `skipped ${event.malformedLines} unreadable lines of ${event.path}; retries of their requests may be stored again`;
    case 'quarantine_failed':
      return `writing to the quarantine file failed; the rejected records are not kept: ${messageOf(event.error)}`;
    case 'records_expired':
      return `removed ${event.count} records older than the retention period`;
    case 'retention_failed':
      return `removing records older than the retention period failed: ${messageOf(event.error)}`;
    case 'records_evicted':
      return `removed the oldest ${event.count} records, because the data directory came close to --max-disk`;
    case 'eviction_failed':
      return `removing the oldest records failed, so the data directory may exceed --max-disk: ${messageOf(event.error)}`;
    case 'project_erased':
      return `erased a project: ${event.records} stored and ${event.quarantined} quarantined records`;
    case 'erase_failed':
      return `ERASING A PROJECT FAILED; some of its records may still exist. Repeat the command, or restart the server, which continues: ${messageOf(event.error)}`;
    case 'compaction_failed':
      return `compaction failed; queries will be slower: ${messageOf(event.error)}`;
    case 'vacuum_failed':
      return `vacuum failed; the store's file stays larger than necessary: ${messageOf(event.error)}`;
    case 'clock_jumped':
      return `the clock jumped by ${event.seconds} s; no records are removed until it has been steady for an hour`;
  }
}

function describeDamage(event: Extract<Event, { type: 'spool_damaged' }>): string {
  const counts = Object.entries(event.lost).map(([kind, count]) => `${count} of kind ${kind}`);
  const unknown = event.isLostKnown ? [] : ['an unknown number'];
  const lost = [...counts, ...unknown].join(', ');
  return [
    `SPOOL DAMAGED: ${event.damagedBytes} bytes of ${event.path} cannot be read and are now in ${event.directory}`,
    lost === '' ? 'No record is lost: the store has them all' : `Acknowledged records lost, at most: ${lost}`,
    ...(event.readable === 0
      ? []
      : [`${event.readable} of them can be read: load the .ndjson files there with dendro ingest`]),
  ].join('. ');
}

function describeKindsAhead(kinds: readonly string[]): string {
  return kinds.length === 0 ? '' : `; the store has newer records of these kinds: ${kinds.join(', ')}`;
}

/** A DendroError hides its cause from clients; the log shows the cause. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? error.cause : error;
}

/** One line, except for a defect of the program: its stack shows where it is. */
function messageOf(error: unknown): string {
  if (isProgrammingError(error)) return error.stack ?? error.message;
  return error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error);
}
