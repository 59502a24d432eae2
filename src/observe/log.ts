// Events as lines for a person: readiness on standard output, everything else on standard error.
import { systemTimer, type Timer } from '../system/timer.ts';
import type { Event, Observe } from './event.ts';
import { LogThrottle } from './log-throttle.ts';

/** What fails again and again while its cause lasts. */
const REPEATED: readonly Event['type'][] = [
  'store_query_failed',
  'apply_failed',
  'flush_failed',
  'spool_write_failed',
  'quarantine_failed',
  'retention_failed',
];

export function logTo(
  output: NodeJS.WritableStream,
  errors: NodeJS.WritableStream,
  timer: Pick<Timer, 'now'> = systemTimer,
): Observe {
  const failures = new LogThrottle(() => timer.now());
  return event => {
    if (event.type === 'listening') output.write(`${event.listener}: listening on ${event.url}\n`);
    if (event.type === 'listening' || isCounted(event)) return;
    if (event.type === 'apply_recovered') failures.reset('apply_failed');
    const untold = REPEATED.includes(event.type) ? failures.next(event.type) : 0;
    if (untold === undefined) return;
    errors.write(`${describe(event)}${untold === 0 ? '' : ` (${untold} more since this was last told)`}\n`);
  };
}

/** What happens all the time is counted (metrics.ts) and not told. */
type Counted = Extract<
  Event,
  { type: 'request_completed' | 'batch_received' | 'records_applied' | 'compacted' | 'vacuumed' }
>;

const COUNTED: readonly string[] = [
  'request_completed',
  'batch_received',
  'records_applied',
  'compacted',
  'vacuumed',
];

function isCounted(event: Event): event is Counted {
  return COUNTED.includes(event.type);
}

function describe(event: Exclude<Event, Counted | { type: 'listening' }>): string {
  switch (event.type) {
    case 'stopping':
      return `${event.signal}: finishing what runs, then stopping`;
    case 'stopped':
      return 'stopped';
    case 'tokens_read':
      return `tokens read again: ${event.count}`;
    case 'tokens_unreadable':
      return `THE TOKENS FILE CANNOT BE READ; the last good tokens stay: ${(event.error as Error).message}`;
    case 'request_failed':
      return `request ${event.id}: ${event.route} failed: ${event.error instanceof Error ? (event.error.stack ?? event.error.message) : event.error}`;
    case 'store_query_failed':
      return `request ${event.id}: the store could not answer: ${messageOf(event.error)}`;
    case 'record_quarantined':
      return `the store refused a record of ${event.kind}; it is in the quarantine file: ${event.reason}`;
    case 'apply_failed':
      return `records wait in the spool, since the store cannot take them now: ${messageOf(event.error)}`;
    case 'apply_recovered':
      return `the store takes records again, after ${event.failures} attempts that failed`;
    case 'flush_failed':
      return `records of ${event.kind} stay in memory and spool, since they cannot be sealed now: ${messageOf(event.error)}`;
    case 'store_unavailable':
      return `queries cannot be answered now, and records wait in the spool: ${messageOf(causeOf(event.error))}`;
    case 'store_available':
      return 'the store answers: queries are served';
    case 'spool_write_failed':
      return `records were refused, since the spool cannot be written: ${messageOf(event.error)}`;
    case 'spool_truncated':
      return event.isTorn
        ? `the spool ends in ${event.lostBytes} bytes that were being written when the program ended; nobody was told that they were stored`
        : `THE SPOOL IS DAMAGED: ${event.lostBytes} bytes of ${event.path} cannot be read; a copy stands beside it`;
    case 'quarantine_failed':
      return `rejected records could not be kept in the quarantine file: ${messageOf(event.error)}`;
    case 'records_expired':
      return `removed ${event.count} records that are past the retention`;
    case 'retention_failed':
      return `records past the retention could not be removed: ${messageOf(event.error)}`;
    case 'compaction_failed':
      return `compaction failed; queries will be slower: ${messageOf(event.error)}`;
    case 'vacuum_failed':
      return `vacuum failed; the file stays larger than necessary: ${messageOf(event.error)}`;
    case 'clock_jumped':
      return `the clock jumped by ${event.seconds} s; nothing is removed until it has held for an hour`;
  }
}

/** What a caller is told says less than what there was. */
function causeOf(error: unknown): unknown {
  return error instanceof Error && error.cause instanceof Error ? error.cause : error;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? (error.message.split('\n', 1)[0] ?? '') : String(error);
}
