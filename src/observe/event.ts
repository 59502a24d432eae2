// All events of a running server, in one table. An entry has the details of the event, the level and text of its log line, and how
// metrics count it. No event contains the secret of a token. No event contains a value of a request's parameter, with one exception: an
// `error` of the store's engine may quote a value in its message. The name of an alert can contain parameters of its definition.
import { isProgrammingError, type RefusalReason } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { AddToMetric } from './metrics.ts';

export const LOG_LEVELS = ['error', 'warn', 'info'] as const;
/**
 * `error`: data or service is lost, or will be if the cause remains; some of these failures are retried. `warn`: a problem that
 * Dendro handles itself.
 */
export type LogLevel = (typeof LOG_LEVELS)[number];

/**
 * How the result of an endpoint was obtained: a `CacheOutcome` (explained in result-cache.ts), or `bypass` for an explanation and
 * for an endpoint without a cache. `none`: the response has no result and no explanation, such as an error.
 */
export const CACHE_OUTCOMES = ['hit', 'miss', 'collapsed', 'request', 'bypass', 'none'] as const;

interface Rules<Details> {
  /**
   * For an event that repeats for as long as its cause lasts. Lines of one event with the same text here are throttled together, so
   * that the failure of one kind or one client does not hide that of another.
   */
  readonly throttleBy?: (event: Details) => string;
  /** The operation in the metric dendro_failures_total. Without `byKind`, its label `kind` is empty. */
  readonly failureOf?: string;
  readonly byKind?: true;
  readonly count?: (event: Details, add: AddToMetric) => void;
}

interface Definition<Details> extends Rules<Details> {
  /** Undefined: the event is not logged. */
  readonly level?: LogLevel;
  readonly describe: (event: Details) => string;
}

function event<Details extends object>(
  level: LogLevel,
  describe: (event: Details) => string,
  rules: Rules<Details> = {},
): Definition<Details> {
  return { level, describe, ...rules };
}

function unlogged<Details extends object>(rules: Rules<Details> = {}): Definition<Details> {
  return { describe: () => '', ...rules };
}

interface Failure {
  error: unknown;
}
interface FailureOfKind extends Failure {
  kind: LogKind;
}
interface RequestDetails {
  /** The route's path, empty if no route matched. */
  route: string;
  /** The name of the queried or explained endpoint, if it exists and the token may call it. Undefined for other routes. */
  endpoint: string | undefined;
  status: number;
}
interface CompletedRequest extends RequestDetails {
  /** How the result was obtained; `none` if there is none. */
  outcome: (typeof CACHE_OUTCOMES)[number];
  /** Until the response was ready to be sent. */
  durationMs: number;
}
/** `id` is the request id that the client gets. */
interface FailedRequest extends RequestDetails, Failure {
  id: string;
}
interface SpoolDamage {
  path: string;
  directory: string;
  damagedBytes: number;
  /**
   * Lost records by kind: the sequence numbers that are missing around the damage and that the store does not have. Counts a
   * little too many if a failed write of an earlier release left a gap there.
   */
  lost: Readonly<Partial<Record<LogKind, number>>>;
  /** False if more records than `lost` may be lost: for some of the damaged bytes, the number of records is unknown. */
  isLostKnown: boolean;
  /** Of the lost records, how many are in a file that `dendro ingest` can load. */
  readable: number;
}

export const EVENTS = {
  started: event<Record<'version' | 'store' | 'dataDirectory' | 'publicUrl' | 'internalUrl', string>>(
    'info',
    e =>
      `dendro ${e.version} started: store ${e.store}, data directory ${e.dataDirectory}, public ${e.publicUrl}, internal ${e.internalUrl}`,
  ),
  /** log.ts writes a line of its own form to standard output. */
  listening: unlogged<{ listener: 'public' | 'internal'; url: string }>(),
  stopping: event<{ signal: string }>(
    'info',
    e => `received ${e.signal}; finishing running requests, then stopping`,
  ),
  stopped: event<object>('info', () => 'stopped'),
  /** The stop took longer than its limit; the process kills itself. */
  stop_timed_out: event<{ seconds: number }>(
    'error',
    e =>
      `not stopped within ${e.seconds} s, because a query does not react to its cancellation, or a flush or another write takes too long; killing the process. No acknowledged data is lost`,
  ),
  /** At start. `variables`: their names, and the names that were probably meant. */
  unknown_variables: event<{ variables: readonly string[] }>(
    'warn',
    e => `unknown environment variables, which have no effect: ${e.variables.join(', ')}`,
  ),
  tokens_read: event<{ count: number }>('info', e => `tokens reloaded: ${e.count}`),
  no_query_token: event<{ tokensFile: string }>(
    'warn',
    e =>
      `no valid token may query; create one: dendro token create --tokens ${e.tokensFile} --name NAME --scope query`,
  ),
  tokens_unreadable: event<Failure>(
    'error',
    e => `TOKENS FILE CANNOT BE READ; the last valid tokens stay active: ${messageOf(e.error)}`,
  ),
  /** The endpoint folders were loaded again; `changed` counts the endpoints that were added, changed or removed. */
  endpoints_reloaded: event<{ count: number; changed: number }>(
    'info',
    e => `endpoints reloaded: ${e.count}; added, changed or removed: ${e.changed}`,
  ),
  /** A reload failed: a folder has a problem, or the store cannot check the SQL now. The last valid endpoints stay in use. */
  endpoints_rejected: event<Failure>(
    'error',
    e => `ENDPOINTS NOT RELOADED; the last valid ones are still served: ${messageOf(e.error)}`,
    { throttleBy: e => messageOf(e.error) },
  ),

  /** A response is ready to be sent. Not reported if the client has disconnected before. metrics.ts counts it. */
  request_completed: unlogged<CompletedRequest>(),
  /** A request failed with 500 because of a defect, or a backup failed while it was sent, after its status 200. */
  request_failed: event<FailedRequest>(
    'error',
    e =>
      `request ${e.id}: ${nameOf(e)} failed ${e.status === 200 ? 'after status 200 was sent' : `with ${e.status}`}: ${stackOf(e.error)}`,
    {
      throttleBy: e =>
        `${e.route} ${e.endpoint ?? ''} ${e.error instanceof Error ? e.error.message : e.error}`,
    },
  ),
  /** A request failed with 503 or 504. `error` may have details that the client does not get. */
  request_unavailable: event<FailedRequest>(
    'warn',
    e => `request ${e.id}: ${nameOf(e)} failed with ${e.status}: ${messageOf(e.error)}`,
    { throttleBy: e => `${e.route} ${e.endpoint ?? ''} ${e.status}` },
  ),
  /** Only with --access-log, with every `request_completed`, whatever its status. */
  access: event<CompletedRequest & { method: string; address: string }>(
    'info',
    e => `${e.method} ${nameOf(e)} ${e.status} from ${e.address} in ${e.durationMs.toFixed(1)} ms`,
  ),
  /** A request was refused because of its token. `tokenName` is the name of a valid or expired token, never its secret. */
  token_refused: event<{
    reason: RefusalReason;
    address: string;
    route: string;
    tokenName: string | undefined;
  }>(
    'warn',
    e =>
      `refused a request to ${e.route} from ${e.address}: ${REFUSALS[e.reason]}${e.tokenName === undefined ? '' : ` (token ${e.tokenName})`}`,
    {
      throttleBy: e => `${e.reason} ${e.address}`,
      count: ({ reason }, add) => add('dendro_auth_failures_total', 1, { reason }),
    },
  ),
  /**
   * The query or the explain SQL of an endpoint succeeded. `id` is the request id, or `warming` for a background refresh. Logged
   * only if it was slow, with the name slow_query.
   */
  query_completed: event<{
    endpoint: string;
    id: string | undefined;
    queuedMs: number;
    executedMs: number;
    rows: number;
  }>(
    'warn',
    e =>
      `slow query of ${e.endpoint}: ${Math.round(e.queuedMs)} ms in the queue, ${Math.round(e.executedMs)} ms in the store, ${e.rows} rows (request ${e.id ?? 'unknown'})`,
    {
      count({ endpoint, queuedMs, executedMs }, add) {
        add('dendro_query_queue_seconds', queuedMs / 1000, { endpoint });
        add('dendro_query_store_seconds', executedMs / 1000, { endpoint });
      },
    },
  ),
  /** A result lacks the records of this many parts that were set aside. */
  result_incomplete: event<{ endpoint: string; missingParts: number }>(
    'warn',
    e => `a result of ${e.endpoint} lacks the records of ${e.missingParts} damaged or missing parts`,
  ),
  /** The background refresh of a cached result failed. The cached result stays until it expires. */
  cache_refresh_failed: event<Failure & { endpoint: string }>(
    'warn',
    e =>
      `refreshing a cached result of ${e.endpoint} failed; it is retried, and the cached result stays until it expires: ${messageOf(causeOf(e.error))}`,
    { throttleBy: e => e.endpoint },
  ),

  /** The result of a batch is known. `deduplicated`: the batch was accepted before and is not stored again. */
  batch_completed: unlogged<{
    /** `unknown`: the source of the records is unknown. */
    kind: LogKind | 'unknown';
    /** Size of the body as received. If a body has several kinds, only its first batch has the size; the others have 0. */
    bytes: number;
    accepted: number;
    /** The number of rejected records by error code. Empty for a repeat. */
    rejected: Readonly<Record<string, number>>;
    deduplicated: boolean;
    /** With --project-metrics, of edge and function_edge logs. The project is empty for those beyond the limit. */
    byProject: readonly (readonly [
      project: string,
      { readonly requests: number; readonly errors: number },
    ])[];
  }>({
    count({ kind, bytes, accepted, rejected, deduplicated, byProject }, add) {
      add('dendro_intake_requests_total', 1, { kind });
      add('dendro_intake_bytes_total', bytes, { kind });
      if (deduplicated) add('dendro_batches_deduplicated_total', 1, { kind });
      else add('dendro_records_accepted_total', accepted, { kind });
      for (const [code, count] of Object.entries(rejected))
        add('dendro_records_rejected_total', count, { kind, code });
      for (const [project, { requests, errors }] of byProject) {
        add('dendro_project_requests_total', requests, { kind, project });
        add('dendro_project_errors_total', errors, { kind, project });
      }
    },
  }),
  /** OTLP records were rejected because of the configuration of their sender or its token. `message` quotes their source or project. */
  otlp_records_rejected: event<{ tokenName: string; message: string }>(
    'warn',
    e => `rejected OTLP log records (token ${e.tokenName}): ${e.message}`,
    { throttleBy: e => `${e.tokenName} ${e.message}` },
  ),
  /** Rejected records were written to the quarantine file. */
  records_quarantined: unlogged<{ count: number }>({
    count: ({ count }, add) => add('dendro_records_quarantined_total', count),
  }),
  quarantine_failed: event<Failure>(
    'error',
    e => `writing to the quarantine file failed; the rejected records are not kept: ${messageOf(e.error)}`,
    { failureOf: 'quarantine', throttleBy: () => '' },
  ),
  spool_write_failed: event<Failure>(
    'error',
    e => `writing to the spool failed; the records were not accepted: ${messageOf(e.error)}`,
    { failureOf: 'spool_write', throttleBy: () => '' },
  ),
  /** A block of the spool cannot be read. Its records, and all later ones, wait. */
  spool_read_failed: event<Failure>(
    'error',
    e =>
      `reading the spool failed; its records wait. Restart dendro, which skips damaged blocks and keeps a copy of them: ${messageOf(e.error)}`,
    { failureOf: 'spool_read', throttleBy: () => '' },
  ),
  /** Segments that are no longer needed could not be deleted, or the flush before that failed. It is retried. */
  spool_cleanup_failed: event<Failure>(
    'warn',
    e =>
      `flushing records or deleting spool files that are no longer needed failed; it is retried: ${messageOf(e.error)}`,
    { failureOf: 'spool_cleanup', throttleBy: () => '' },
  ),
  /** The crash of an earlier run interrupted the last write to the spool. Its records were never acknowledged. */
  spool_truncated: event<{ path: string; invalidBytes: number }>(
    'warn',
    e =>
      `removed an unfinished write of ${e.invalidBytes} bytes from the end of the spool; it was not acknowledged`,
  ),
  /** A segment was damaged. Its sound blocks are kept; the damaged bytes are in `directory`. */
  spool_damaged: event<SpoolDamage>('error', describeDamage, { failureOf: 'spool_read' }),
  /**
   * Segments, or blocks at the end of one, are missing. `kinds`: the store has higher sequence numbers of these kinds than the spool.
   * `lost`: how many records are missing before or between segments. If both are empty, the last segment is shorter than at the last
   * clean stop, or there is no segment although the spool has had records.
   */
  spool_incomplete: event<{ directory: string; kinds: readonly LogKind[] } & Pick<SpoolDamage, 'lost'>>(
    'error',
    e =>
      `SPOOL INCOMPLETE: files of ${e.directory}, or the ends of files, are missing${e.kinds.length === 0 ? '' : `; the store has newer records of these kinds: ${e.kinds.join(', ')}`}. Acknowledged records that were not in the store yet may be lost${Object.keys(e.lost).length === 0 ? '' : ` (${formatLost(e.lost).join(', ')}, unless another --store has them)`}. New records are stored as usual`,
    { failureOf: 'spool_read' },
  ),
  /** These lines of the idempotency log cannot be read. */
  idempotency_log_damaged: event<{ path: string; malformedLines: number }>(
    'warn',
    e =>
      `skipped ${e.malformedLines} unreadable lines of ${e.path}; retries of their requests may be stored again`,
  ),

  /** The store has processed these records: queries see them from now on, except those that it rejected. */
  records_applied: unlogged<{ kind: LogKind; count: number }>({
    count: ({ kind, count }, add) => add('dendro_records_applied_total', count, { kind }),
  }),
  /** The record goes to the quarantine file; if that fails, `quarantine_failed` follows. `reason` is the engine's message. */
  record_rejected_by_store: event<{ kind: LogKind; reason: string }>(
    'warn',
    e =>
      `the store rejected a record of kind ${e.kind}; it goes to the quarantine: ${e.reason.split('\n', 1)[0]}`,
    { count: ({ kind }, add) => add('dendro_records_rejected_by_store_total', 1, { kind }) },
  ),
  apply_failed: event<FailureOfKind>(
    'error',
    e =>
      `applying records of kind ${e.kind} to the store failed; they stay in the spool and are retried: ${messageOf(e.error)}`,
    { failureOf: 'apply', byKind: true, throttleBy: e => e.kind },
  ),
  apply_recovered: event<{ kind: LogKind; failures: number }>(
    'info',
    e => `applying records of kind ${e.kind} works again after ${e.failures} failed attempts`,
  ),
  flushed: unlogged<{ kind: LogKind; durationMs: number }>({
    count: ({ kind, durationMs }, add) => add('dendro_flush_duration_seconds', durationMs / 1000, { kind }),
  }),
  flush_failed: event<FailureOfKind>(
    'error',
    e =>
      `flushing records of kind ${e.kind} failed; they stay in memory and in the spool: ${messageOf(e.error)}`,
    { failureOf: 'flush', byKind: true, throttleBy: e => e.kind },
  ),
  /** A new part, read back from disk, differs from what was written. It is written again. */
  verification_failed: event<FailureOfKind>(
    'error',
    e =>
      `A NEW PART OF KIND ${e.kind} DIFFERS FROM WHAT WAS WRITTEN; it is written again, and no record is lost. Check the disk and the memory of this machine: ${messageOf(e.error)}`,
    { failureOf: 'verification', byKind: true },
  ),
  /** A part is damaged or missing. Queries no longer read it; a damaged file is kept under another name. Repeated at each start. */
  part_set_aside: event<{ kind: LogKind; file: string; problem: string }>(
    'error',
    e =>
      `PART ${e.file} WAS SET ASIDE: ${e.problem}. Queries lack its records of kind ${e.kind}. Stop the server, restore this file from a backup to parts/, and start again`,
    { failureOf: 'store_read' },
  ),
  /** The files of the store are missing, although a server has used the data directory with it. They are created, without records. */
  store_missing: event<{ store: 'duckdb' | 'clickhouse' }>(
    'error',
    ({ store }) =>
      store === 'duckdb'
        ? 'STORE MISSING: manifest.json and all parts are missing, although a server has used this data directory. Dendro creates an empty store. If the files were not deleted on purpose, stop the server and restore a backup'
        : 'STORE MISSING: clickhouse/ is missing, although a server has used this data directory. Dendro creates it, and sends all records of the spool to ClickHouse, which can store some of them twice',
    { failureOf: 'store_read' },
  ),
  /** A file in parts/ that Dendro did not write. It stays. */
  foreign_file: event<{ path: string }>('warn', e => `${e.path} is not a file of Dendro; it stays as it is`),
  /** The manifest does not name this part, so an older one was restored. The part was renamed. */
  unnamed_part: event<{ path: string }>(
    'error',
    e =>
      `UNNAMED PART: manifest.json does not name a part, so it is an older one; the part was renamed to ${e.path}. It may have records that no other part has`,
  ),
  /** The store of an earlier release is converted to parts. `share` is from 0 to 1. */
  conversion_progress: event<{ share: number; records: number }>(
    'info',
    e => `converting the store of an earlier release: ${Math.floor(e.share * 100)} % (${e.records} records)`,
  ),
  converted: event<{ records: number }>(
    'info',
    e =>
      `converted the store of an earlier release: ${e.records} records; earlier releases can no longer read this data directory`,
  ),
  /** A table of the earlier release that cannot be read was left out. `records` is undefined if unknown. */
  old_table_lost: event<{ table: string; records: number | undefined; problem: string }>(
    'error',
    e =>
      `TABLE ${e.table} OF AN EARLIER RELEASE CANNOT BE READ; its ${e.records ?? 'unknown number of'} records are lost: ${e.problem}`,
  ),
  /** The write-ahead log of the earlier release ended with an unfinished write, which is now in `copy`. */
  old_log_truncated: event<{ path: string; invalidBytes: number; copy: string }>(
    'warn',
    e =>
      `moved an unfinished write of ${e.invalidBytes} bytes from the end of ${e.path} to ${e.copy}; its records are still in the spool. Delete the copy after you have checked that no records are missing`,
  ),
  /** The store is unreachable or incomplete, so queries fail. The preflight is retried. */
  store_unavailable: event<Failure>(
    'error',
    e => `store unavailable; queries fail and records wait in the spool: ${messageOf(causeOf(e.error))}`,
    { throttleBy: e => messageOf(e.error) },
  ),
  store_available: event<object>('info', () => 'store available; queries are served'),

  records_expired: event<{ count: number }>(
    'info',
    e => `removed ${e.count} records older than the retention period`,
    { count: ({ count }, add) => add('dendro_records_expired_total', count) },
  ),
  retention_failed: event<Failure>(
    'error',
    e => `removing records older than the retention period failed: ${messageOf(e.error)}`,
    { failureOf: 'retention', throttleBy: () => '' },
  ),
  /** The oldest records were removed because of --max-disk. */
  records_evicted: event<{ count: number }>(
    'warn',
    e => `removed the oldest ${e.count} records, because the data directory came close to --max-disk`,
    { count: ({ count }, add) => add('dendro_records_evicted_total', count) },
  ),
  eviction_failed: event<Failure>(
    'error',
    e =>
      `removing the oldest records failed, so the data directory may exceed --max-disk: ${messageOf(e.error)}`,
    { failureOf: 'eviction', throttleBy: () => '' },
  ),
  /** `dendro erase` has erased the records of a project. */
  project_erased: event<{ records: number; quarantined: number }>(
    'info',
    e => `erased a project: ${e.records} stored and ${e.quarantined} quarantined records`,
  ),
  erase_failed: event<Failure>(
    'error',
    e =>
      `ERASING A PROJECT FAILED; some of its records may still exist. Repeat the command, or restart the server, which then continues the erasure: ${messageOf(e.error)}`,
    { failureOf: 'erase' },
  ),
  /** The store merged parts. */
  compacted: unlogged<{ durationMs: number }>({
    count({ durationMs }, add) {
      add('dendro_compactions_total', 1);
      add('dendro_compaction_duration_seconds', durationMs / 1000);
    },
  }),
  compaction_failed: event<Failure>(
    'warn',
    e => `compaction failed; queries will be slower: ${messageOf(e.error)}`,
    { failureOf: 'compaction' },
  ),
  /** Compaction, retention, eviction or an erasure no longer needs a part. Its space is not free. The next start deletes it. */
  part_deletion_failed: event<Failure & { path: string }>(
    'error',
    e =>
      `cannot delete ${e.path}, which is no longer needed, so its disk space is not free: ${messageOf(e.error)}. The next start tries again`,
    { failureOf: 'part_deletion', throttleBy: () => '' },
  ),
  // Alerts

  /** An evaluation succeeded or failed. `missed`: evaluations that did not run, because earlier ones took too long. */
  alert_evaluated: unlogged<{ alert: string; outcome: 'ok' | 'failed'; missed: number }>({
    count({ outcome, missed }, add) {
      add('dendro_alert_evaluations_total', 1, { outcome });
      add('dendro_alert_evaluations_total', missed, { outcome: 'missed' });
    },
  }),
  alert_changed: event<{ alert: string; fired: number; resolved: number }>(
    'info',
    e => `alert ${e.alert}: ${e.fired} instances began to fire, ${e.resolved} resolved`,
  ),
  /** The alert has as many instances as it can have. */
  alert_rows_ignored: event<{ alert: string; ignored: number }>(
    'warn',
    e => `alert ${e.alert}: ${e.ignored} rows are ignored, because an alert can have 1,000 instances`,
    { throttleBy: e => e.alert },
  ),
  alert_evaluation_failed: event<Failure & { alert: string }>(
    'warn',
    e =>
      `evaluating the alert ${e.alert} failed; after 3 failures in a row its receivers are notified: ${messageOf(causeOf(e.error))}`,
    { throttleBy: e => e.alert },
  ),
  /** The receiver accepted a notification. */
  notification_sent: unlogged<{ receiver: string }>({
    count: ({ receiver }, add) => add('dendro_notifications_total', 1, { receiver, outcome: 'sent' }),
  }),
  /** An attempt failed. It is retried for a day. */
  notification_failed: event<Failure & { receiver: string }>(
    'warn',
    e =>
      `the receiver ${e.receiver} did not accept a notification; it is retried for a day: ${messageOf(e.error)}`,
    {
      throttleBy: e => e.receiver,
      count: ({ receiver }, add) => add('dendro_notifications_total', 1, { receiver, outcome: 'failed' }),
    },
  ),
  notification_dropped: event<{ receiver: string; reason: string }>(
    'error',
    e => `A NOTIFICATION FOR THE RECEIVER ${e.receiver} WAS DROPPED: ${e.reason}`,
    { count: ({ receiver }, add) => add('dendro_notifications_total', 1, { receiver, outcome: 'dropped' }) },
  ),
  /** The state of an alert could not be written. Nothing is sent before it is, and nothing twice because of it. */
  alert_state_failed: event<Failure>(
    'error',
    e => `writing the state of an alert failed; it is tried again: ${messageOf(e.error)}`,
    { failureOf: 'alert_state', throttleBy: () => '' },
  ),
  alert_state_unreadable: event<Failure & { file: string }>(
    'error',
    e =>
      `ALERT STATE UNREADABLE: it was set aside as ${e.file}, so its undelivered notifications are lost and its problems are reported again: ${messageOf(e.error)}`,
    { failureOf: 'alert_state' },
  ),

  /** The system clock jumped by this much, compared with the monotonic clock; negative: it was set back. Retention pauses. */
  clock_jumped: event<{ seconds: number }>(
    'warn',
    e =>
      `the clock jumped by ${e.seconds} s; retention removes no records until the clock has been steady for an hour`,
  ),
} as const;

type EventType = keyof typeof EVENTS;
type DetailsOf<Type extends EventType> =
  (typeof EVENTS)[Type] extends Definition<infer Details> ? Readonly<Details> : never;

export type Event = { [Type in EventType]: { readonly type: Type } & DetailsOf<Type> }[EventType];
export type Observe = (event: Event) => void;

/** The definition of any event. Its functions accept the event that it was looked up with. */
export function definitionOf({ type }: Event): Definition<Event> {
  return EVENTS[type] as Definition<never> as Definition<Event>;
}

const REFUSALS: Readonly<Record<RefusalReason, string>> = {
  no_token: 'it has no token',
  unknown_token: 'its token is unknown or revoked',
  expired_token: 'its token has expired',
  rate_limited: 'its token exceeds its rate',
  missing_scope: 'its token does not have the required scope',
  project_not_allowed: 'its token is pinned to other projects',
};

function describeDamage(damage: SpoolDamage): string {
  const counts = formatLost(damage.lost);
  const unknown = counts.length === 0 ? 'an unknown number' : 'and an unknown number more';
  const lost = [...counts, ...(damage.isLostKnown ? [] : [unknown])].join(', ');
  return [
    `SPOOL DAMAGED: ${damage.damagedBytes} bytes of ${damage.path} cannot be read and are now in ${damage.directory}`,
    lost === ''
      ? 'No record is lost: the store has them all'
      : `Acknowledged records lost${damage.isLostKnown ? ', at most' : ''}: ${lost}`,
    ...(damage.readable === 0
      ? []
      : [`${damage.readable} of them can be read: load the .ndjson files there with dendro ingest`]),
  ].join('. ');
}

function formatLost(lost: SpoolDamage['lost']): string[] {
  return Object.entries(lost).map(([kind, count]) => `${count} of kind ${kind}`);
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

function stackOf(error: unknown): string {
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** The route of a request, with the name of its endpoint. */
function nameOf({ endpoint, route }: RequestDetails): string {
  if (route === '') return 'an unknown path';
  return endpoint === undefined ? route : route.replace('*', endpoint);
}
