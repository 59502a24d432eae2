// The events of a running server, as one union type. log.ts logs them and metrics.ts counts them.
// No event contains the secret of a token. No event contains a parameter's value, with one exception: an `error` of the store's
// engine may quote a value in its message.
import type { LogKind } from '../domain/log-columns.ts';

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
  /** `route` is the route's path, empty if no route matched. */
  | { readonly type: 'request_completed'; readonly route: string; readonly status: number }
  /** An internal error. `id` is the request id that the client gets. */
  | { readonly type: 'request_failed'; readonly route: string; readonly id: string; readonly error: unknown }
  /** A request failed because of the store. `error` has details that the client does not get. */
  | { readonly type: 'store_query_failed'; readonly id: string; readonly error: unknown }
  /** The result of a batch is known. `deduplicated`: the batch was accepted before and is not stored again. */
  | {
      readonly type: 'batch_completed';
      readonly kind: LogKind;
      readonly accepted: number;
      readonly rejected: Readonly<Record<string, number>>;
      readonly deduplicated: boolean;
    }
  /** Queries see these records from now on. */
  | { readonly type: 'records_applied'; readonly kind: LogKind; readonly count: number }
  /** The record is in the quarantine file. `reason` is the engine's message. */
  | { readonly type: 'record_rejected_by_store'; readonly kind: LogKind; readonly reason: string }
  | { readonly type: 'apply_failed'; readonly kind: LogKind; readonly error: unknown }
  | { readonly type: 'apply_recovered'; readonly kind: LogKind; readonly failures: number }
  /** Segments that are no longer needed could not be deleted, or a flush for that purpose failed. It is retried. */
  | { readonly type: 'spool_cleanup_failed'; readonly error: unknown }
  | { readonly type: 'flush_failed'; readonly kind: LogKind; readonly error: unknown }
  | { readonly type: 'spool_write_failed'; readonly error: unknown }
  /** The store is unreachable or incomplete, so queries fail. The preflight is retried. */
  | { readonly type: 'store_unavailable'; readonly error: unknown }
  | { readonly type: 'store_available' }
  | {
      readonly type: 'spool_truncated';
      readonly path: string;
      readonly invalidBytes: number;
      /** Whether the bytes are an unfinished write at the end, which was never acknowledged. */
      readonly isTorn: boolean;
    }
  /** These lines of the idempotency log cannot be read. */
  | { readonly type: 'idempotency_log_damaged'; readonly path: string; readonly malformedLines: number }
  | { readonly type: 'quarantine_failed'; readonly error: unknown }
  | { readonly type: 'records_expired'; readonly count: number }
  | { readonly type: 'retention_failed'; readonly error: unknown }
  /** The store merged parts. */
  | { readonly type: 'compacted' }
  | { readonly type: 'compaction_failed'; readonly error: unknown }
  /** The store rewrote its file to shrink it. */
  | { readonly type: 'vacuumed' }
  | { readonly type: 'vacuum_failed'; readonly error: unknown }
  /** The time of day changed by this much without that time having passed. Retention pauses. */
  | { readonly type: 'clock_jumped'; readonly seconds: number };

export type Observe = (event: Event) => void;
