// The events of a running server, as one union type. log.ts logs them and metrics.ts counts them.
// No event contains the secret of a token. No event contains a parameter's value, with one exception: an `error` of the store's
// engine may quote a value in its message.
import type { RefusalReason } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';

/**
 * How the result of an endpoint was obtained: a `CacheOutcome` (explained in result-cache.ts), or `bypass` for an explanation and
 * for an endpoint without a cache. `none`: the response has no result and no explanation, such as an error.
 */
export const CACHE_OUTCOMES = ['hit', 'miss', 'collapsed', 'request', 'bypass', 'none'] as const;

export type Event =
  | {
      readonly type: 'started';
      readonly version: string;
      readonly store: string;
      readonly dataDirectory: string;
      readonly publicUrl: string;
      readonly internalUrl: string;
    }
  | { readonly type: 'listening'; readonly listener: 'public' | 'internal'; readonly url: string }
  | { readonly type: 'stopping'; readonly signal: string }
  | { readonly type: 'stopped' }
  /** The stop took longer than its limit; the process kills itself. */
  | { readonly type: 'stop_timed_out'; readonly seconds: number }
  | { readonly type: 'tokens_read'; readonly count: number }
  | { readonly type: 'tokens_unreadable'; readonly error: unknown }
  /** The endpoint folders were loaded again; `changed` counts the endpoints that were added, changed or removed. */
  | { readonly type: 'endpoints_reloaded'; readonly count: number; readonly changed: number }
  /** A reload failed: a folder has a problem, or the store cannot check the SQL now. The last valid endpoints stay in use. */
  | { readonly type: 'endpoints_rejected'; readonly error: unknown }
  /** A response is ready to be sent. Not reported if the client has disconnected before. */
  | {
      readonly type: 'request_completed';
      /** The route's path, empty if no route matched. */
      readonly route: string;
      /** The name of the queried or explained endpoint, if it exists and the token may call it. Undefined for other routes. */
      readonly endpoint: string | undefined;
      readonly status: number;
      /** How the result was obtained; `none` if there is none. */
      readonly outcome: (typeof CACHE_OUTCOMES)[number];
      /** Until the response was ready to be sent. */
      readonly durationMs: number;
    }
  /** The query or the explain SQL of an endpoint succeeded. `id` is the request id, or `warming` for a background refresh. */
  | {
      readonly type: 'query_completed';
      readonly endpoint: string;
      readonly id: string | undefined;
      readonly queuedMs: number;
      readonly executedMs: number;
      readonly rows: number;
    }
  /** The background refresh of a cached result failed. The cached result stays until it expires. */
  | { readonly type: 'cache_refresh_failed'; readonly endpoint: string; readonly error: unknown }
  /** A request was refused because of its token. `tokenName` is the name of a valid or expired token, never its secret. */
  | {
      readonly type: 'token_refused';
      readonly reason: RefusalReason;
      readonly address: string;
      readonly route: string;
      readonly tokenName: string | undefined;
    }
  /**
   * A request failed with 500 because of a defect, or a backup failed while it was sent, after its status 200. `id` is the
   * request id that the client gets.
   */
  | {
      readonly type: 'request_failed';
      readonly route: string;
      readonly endpoint: string | undefined;
      readonly status: number;
      readonly id: string;
      readonly error: unknown;
    }
  /** A request failed with 503 or 504. `error` may have details that the client does not get. */
  | {
      readonly type: 'request_unavailable';
      readonly route: string;
      readonly endpoint: string | undefined;
      readonly status: number;
      readonly id: string;
      readonly error: unknown;
    }
  /**
   * Only with --access-log, with every `request_completed`: a response is ready to be sent, whatever its status. A request that
   * failed with 5xx is also reported as `request_failed` or `request_unavailable`.
   */
  | {
      readonly type: 'access';
      readonly method: string;
      readonly route: string;
      readonly endpoint: string | undefined;
      readonly status: number;
      readonly outcome: (typeof CACHE_OUTCOMES)[number];
      readonly durationMs: number;
      readonly address: string;
    }
  /** The result of a batch is known. `deduplicated`: the batch was accepted before and is not stored again. */
  | {
      readonly type: 'batch_completed';
      /** `unknown`: the source of the records is unknown. */
      readonly kind: LogKind | 'unknown';
      /** Size of the body as received. If a body has several kinds, only its first batch has the size; the others have 0. */
      readonly bytes: number;
      readonly accepted: number;
      /** The number of rejected records by error code. Empty for a repeat. */
      readonly rejected: Readonly<Record<string, number>>;
      readonly deduplicated: boolean;
    }
  /** Rejected records were written to the quarantine file. */
  | { readonly type: 'records_quarantined'; readonly count: number }
  /** The store has processed these records: queries see them from now on, except those that it rejected. */
  | { readonly type: 'records_applied'; readonly kind: LogKind; readonly count: number }
  /** The record goes to the quarantine file; if that fails, `quarantine_failed` follows. `reason` is the engine's message. */
  | { readonly type: 'record_rejected_by_store'; readonly kind: LogKind; readonly reason: string }
  | { readonly type: 'apply_failed'; readonly kind: LogKind; readonly error: unknown }
  | { readonly type: 'apply_recovered'; readonly kind: LogKind; readonly failures: number }
  /** Segments that are no longer needed could not be deleted, or the flush before that failed. It is retried. */
  | { readonly type: 'spool_cleanup_failed'; readonly error: unknown }
  | { readonly type: 'flushed'; readonly kind: LogKind; readonly durationMs: number }
  | { readonly type: 'flush_failed'; readonly kind: LogKind; readonly error: unknown }
  /** A new part, read back from disk, differs from what was written. It is written again. */
  | { readonly type: 'verification_failed'; readonly kind: LogKind; readonly error: unknown }
  /** A part is damaged or missing. Queries no longer read it; a damaged file is kept under another name. Repeated at each start. */
  | {
      readonly type: 'part_set_aside';
      readonly kind: LogKind;
      readonly file: string;
      readonly problem: string;
    }
  /** A result lacks the records of this many parts that were set aside. */
  | { readonly type: 'result_incomplete'; readonly endpoint: string; readonly missingParts: number }
  /** A file in parts/ that Dendro did not write. It stays. */
  | { readonly type: 'foreign_file'; readonly path: string }
  /** An older manifest was restored, and it does not name this part. It was renamed. */
  | { readonly type: 'unnamed_part'; readonly path: string }
  /** The store of an earlier release is converted to parts. `share` is from 0 to 1. */
  | { readonly type: 'conversion_progress'; readonly share: number; readonly records: number }
  | { readonly type: 'converted'; readonly records: number }
  /** A table of the earlier release that cannot be read was left out. `records` is undefined if unknown. */
  | {
      readonly type: 'old_table_lost';
      readonly table: string;
      readonly records: number | undefined;
      readonly problem: string;
    }
  /** The write-ahead log of the earlier release ended with an unfinished write, which is now in `copy`. */
  | {
      readonly type: 'old_log_truncated';
      readonly path: string;
      readonly invalidBytes: number;
      readonly copy: string;
    }
  | { readonly type: 'spool_write_failed'; readonly error: unknown }
  /** The store is unreachable or incomplete, so queries fail. The preflight is retried. */
  | { readonly type: 'store_unavailable'; readonly error: unknown }
  | { readonly type: 'store_available' }
  | {
      /** The crash of an earlier run interrupted the last write to the spool. Its records were never acknowledged. */
      readonly type: 'spool_truncated';
      readonly path: string;
      readonly invalidBytes: number;
    }
  | {
      /** A segment was damaged. Its sound blocks are kept; the damaged bytes are in `directory`. */
      readonly type: 'spool_damaged';
      readonly path: string;
      readonly directory: string;
      readonly damagedBytes: number;
      /**
       * Lost records by kind: the sequence numbers that are missing around the damage and that the store does not have. Counts a
       * little too many if a failed write left a gap there.
       */
      readonly lost: Readonly<Partial<Record<LogKind, number>>>;
      /** False if more records than `lost` may be lost: for some of the damaged bytes, the number of records is unknown. */
      readonly isLostKnown: boolean;
      /** Of the lost records, how many are in a file that `dendro ingest` can load. */
      readonly readable: number;
    }
  /**
   * Segments, or blocks at the end of the last one, are missing. `kinds`: the store has higher sequence numbers of these kinds than
   * the spool. Empty: the last segment is shorter than at the last clean stop, or there is no segment although the spool has had
   * records.
   */
  | { readonly type: 'spool_incomplete'; readonly directory: string; readonly kinds: readonly LogKind[] }
  /** The manifest and all parts are missing, although a server has used the data directory. An empty store is created. */
  | { readonly type: 'store_missing' }
  /** These lines of the idempotency log cannot be read. */
  | { readonly type: 'idempotency_log_damaged'; readonly path: string; readonly malformedLines: number }
  | { readonly type: 'quarantine_failed'; readonly error: unknown }
  | { readonly type: 'records_expired'; readonly count: number }
  | { readonly type: 'retention_failed'; readonly error: unknown }
  /** The oldest records were removed because of --max-disk. */
  | { readonly type: 'records_evicted'; readonly count: number }
  | { readonly type: 'eviction_failed'; readonly error: unknown }
  /** `dendro erase` has erased the records of a project. */
  | { readonly type: 'project_erased'; readonly records: number; readonly quarantined: number }
  | { readonly type: 'erase_failed'; readonly error: unknown }
  /** The store merged parts. */
  | { readonly type: 'compacted'; readonly durationMs: number }
  | { readonly type: 'compaction_failed'; readonly error: unknown }
  /** The system clock jumped by this much, compared with the monotonic clock; negative: it was set back. Retention pauses. */
  | { readonly type: 'clock_jumped'; readonly seconds: number };

export type Observe = (event: Event) => void;
