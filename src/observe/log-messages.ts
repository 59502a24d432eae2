// What the log says about each event, and how important it is. No message contains a token or a parameter value, except where an
// error of the store's engine quotes a value.
import { isProgrammingError, type RefusalReason } from '../domain/errors.ts';
import type { Event } from './event.ts';

export const LOG_LEVELS = ['error', 'warn', 'info'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

const METRIC_ONLY = [
  'request_completed',
  'batch_completed',
  'records_quarantined',
  'flushed',
  'records_applied',
  'compacted',
] as const satisfies Event['type'][];

/** Routine events, counted by metrics.ts and not logged. `listening` has its own line on standard output. */
type UnloggedEvent = Extract<Event, { type: (typeof METRIC_ONLY)[number] | 'listening' }>;

export type LoggedEvent = Exclude<Event, UnloggedEvent>;

const UNLOGGED: ReadonlySet<Event['type']> = new Set(['listening', ...METRIC_ONLY]);

export function isLogged(event: Event): event is LoggedEvent {
  return !UNLOGGED.has(event.type);
}

/**
 * `error`: data or service is lost, or will be if the cause remains; some of these failures are retried. `warn`: a problem that
 * Dendro handles itself.
 */
export const LEVELS: Readonly<Record<LoggedEvent['type'], LogLevel>> = {
  started: 'info',
  stopping: 'info',
  stopped: 'info',
  stop_timed_out: 'error',
  tokens_read: 'info',
  tokens_unreadable: 'error',
  endpoints_reloaded: 'info',
  endpoints_rejected: 'error',
  request_failed: 'error',
  request_unavailable: 'warn',
  access: 'info',
  query_completed: 'warn', // log.ts logs only slow queries
  cache_refresh_failed: 'warn',
  token_refused: 'warn',
  record_rejected_by_store: 'warn',
  apply_failed: 'error',
  apply_recovered: 'info',
  spool_cleanup_failed: 'warn',
  flush_failed: 'error',
  verification_failed: 'error',
  part_set_aside: 'error',
  result_incomplete: 'warn',
  foreign_file: 'warn',
  unnamed_part: 'error',
  conversion_progress: 'info',
  converted: 'info',
  old_table_lost: 'error',
  old_log_truncated: 'warn',
  store_unavailable: 'error',
  store_available: 'info',
  spool_write_failed: 'error',
  spool_truncated: 'warn',
  spool_damaged: 'error',
  spool_incomplete: 'error',
  store_missing: 'error',
  idempotency_log_damaged: 'warn',
  quarantine_failed: 'error',
  records_expired: 'info',
  retention_failed: 'error',
  records_evicted: 'warn',
  eviction_failed: 'error',
  project_erased: 'info',
  erase_failed: 'error',
  compaction_failed: 'warn',
  clock_jumped: 'warn',
};

const REFUSALS: Readonly<Record<RefusalReason, string>> = {
  no_token: 'it has no token',
  unknown_token: 'its token is unknown or revoked',
  expired_token: 'its token has expired',
  rate_limited: 'its token exceeds its rate',
  missing_scope: 'its token does not have the required scope',
  project_not_allowed: 'its token is pinned to other projects',
};

export function describe(event: LoggedEvent): string {
  switch (event.type) {
    case 'started':
      return `dendro ${event.version} started: store ${event.store}, data directory ${event.dataDirectory}, public ${event.publicUrl}, internal ${event.internalUrl}`;
    case 'stopping':
      return `received ${event.signal}; finishing running requests, then stopping`;
    case 'stopped':
      return 'stopped';
    case 'stop_timed_out':
      return `not stopped within ${event.seconds} s, because a query does not react to its cancellation, or a flush or another write takes too long; killing the process. No acknowledged data is lost`;
    case 'tokens_read':
      return `tokens reloaded: ${event.count}`;
    case 'tokens_unreadable':
      return `TOKENS FILE CANNOT BE READ; the last valid tokens stay active: ${messageOf(event.error)}`;
    case 'endpoints_reloaded':
      return `endpoints reloaded: ${event.count}; added, changed or removed: ${event.changed}`;
    case 'endpoints_rejected':
      return `ENDPOINTS NOT RELOADED; the last valid ones are still served: ${messageOf(event.error)}`;
    case 'request_failed':
      return `request ${event.id}: ${nameOf(event)} failed ${event.status === 200 ? 'after status 200 was sent' : `with ${event.status}`}: ${stackOf(event.error)}`;
    case 'request_unavailable':
      return `request ${event.id}: ${nameOf(event)} failed with ${event.status}: ${messageOf(event.error)}`;
    case 'query_completed':
      return `slow query of ${event.endpoint}: ${Math.round(event.queuedMs)} ms in the queue, ${Math.round(event.executedMs)} ms in the store, ${event.rows} rows (request ${event.id ?? 'unknown'})`;
    case 'cache_refresh_failed':
      return `refreshing a cached result of ${event.endpoint} failed; it is retried, and the cached result stays until it expires: ${messageOf(causeOf(event.error))}`;
    case 'token_refused':
      return `refused a request to ${event.route} from ${event.address}: ${REFUSALS[event.reason]}${event.tokenName === undefined ? '' : ` (token ${event.tokenName})`}`;
    case 'access':
      return `${event.method} ${nameOf(event)} ${event.status} from ${event.address} in ${event.durationMs.toFixed(1)} ms`;
    case 'record_rejected_by_store':
      return `the store rejected a record of kind ${event.kind}; it goes to the quarantine: ${event.reason.split('\n', 1)[0]}`;
    case 'apply_failed':
      return `applying records of kind ${event.kind} to the store failed; they stay in the spool and are retried: ${messageOf(event.error)}`;
    case 'apply_recovered':
      return `applying records of kind ${event.kind} works again after ${event.failures} failed attempts`;
    case 'spool_cleanup_failed':
      return `flushing records or deleting spool files that are no longer needed failed; it is retried: ${messageOf(event.error)}`;
    case 'flush_failed':
      return `flushing records of kind ${event.kind} failed; they stay in memory and in the spool: ${messageOf(event.error)}`;
    case 'verification_failed':
      return `A NEW PART OF KIND ${event.kind} DIFFERS FROM WHAT WAS WRITTEN; it is written again, and no record is lost. Check the disk and the memory of this machine: ${messageOf(event.error)}`;
    case 'part_set_aside':
      return `PART ${event.file} WAS SET ASIDE: ${event.problem}. Queries lack its records of kind ${event.kind}. Stop the server, restore this file from a backup to parts/, and start again`;
    case 'result_incomplete':
      return `a result of ${event.endpoint} lacks the records of ${event.missingParts} damaged or missing parts`;
    case 'foreign_file':
      return `${event.path} is not a file of Dendro; it stays as it is`;
    case 'unnamed_part':
      return `UNNAMED PART: the restored manifest does not name a part; it was renamed to ${event.path}. It may have records that no other part has`;
    case 'conversion_progress':
      return `converting the store of an earlier release: ${Math.floor(event.share * 100)} % (${event.records} records)`;
    case 'converted':
      return `converted the store of an earlier release: ${event.records} records; earlier releases can no longer read this data directory`;
    case 'old_table_lost':
      return `TABLE ${event.table} OF AN EARLIER RELEASE CANNOT BE READ; its ${event.records ?? 'unknown number of'} records are lost: ${event.problem}`;
    case 'old_log_truncated':
      return `moved an unfinished write of ${event.invalidBytes} bytes from the end of ${event.path} to ${event.copy}; its records are still in the spool. Delete the copy after you have checked that no records are missing`;
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
      return `SPOOL INCOMPLETE: files of ${event.directory}, or the ends of files, are missing${describeKindsAhead(event.kinds)}. Acknowledged records that were not in the store yet may be lost. New records are stored as usual`;
    case 'store_missing':
      return 'STORE MISSING: manifest.json and all parts are missing, although a server has used this data directory. Dendro creates an empty store. If the files were not deleted on purpose, stop the server and restore a backup';
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
      return `ERASING A PROJECT FAILED; some of its records may still exist. Repeat the command, or restart the server, which then continues the erasure: ${messageOf(event.error)}`;
    case 'compaction_failed':
      return `compaction failed; queries will be slower: ${messageOf(event.error)}`;
    case 'clock_jumped':
      return `the clock jumped by ${event.seconds} s; retention removes no records until the clock has been steady for an hour`;
  }
}

function describeDamage(event: Extract<Event, { type: 'spool_damaged' }>): string {
  const counts = Object.entries(event.lost).map(([kind, count]) => `${count} of kind ${kind}`);
  const unknown = counts.length === 0 ? 'an unknown number' : 'and an unknown number more';
  const lost = [...counts, ...(event.isLostKnown ? [] : [unknown])].join(', ');
  return [
    `SPOOL DAMAGED: ${event.damagedBytes} bytes of ${event.path} cannot be read and are now in ${event.directory}`,
    lost === ''
      ? 'No record is lost: the store has them all'
      : `Acknowledged records lost${event.isLostKnown ? ', at most' : ''}: ${lost}`,
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

/** The route of a request, with the name of its endpoint. */
function nameOf({
  endpoint,
  route,
}: {
  readonly endpoint: string | undefined;
  readonly route: string;
}): string {
  if (route === '') return 'an unknown path';
  return endpoint === undefined ? route : route.replace('*', endpoint);
}

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
