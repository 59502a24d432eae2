// Everything that can be observed of a running program, as one union. log.ts and metrics.ts each read it.
// No event carries a token or a parameter's value.
import type { LogKind } from '../domain/log-columns.ts';

export type Event =
  | { readonly type: 'listening'; readonly listener: 'public' | 'internal'; readonly url: string }
  | { readonly type: 'stopping'; readonly signal: string }
  | { readonly type: 'stopped' }
  | { readonly type: 'tokens_read'; readonly count: number }
  | { readonly type: 'tokens_unreadable'; readonly error: unknown }
  /** `route` is empty for a path that there is not. */
  | { readonly type: 'request_completed'; readonly route: string; readonly status: number }
  /** `id` is the one that the caller was told. */
  | { readonly type: 'request_failed'; readonly route: string; readonly id: string; readonly error: unknown }
  /** A call could not be answered, since the store did not answer, or refused; what it said is more than callers are told. */
  | { readonly type: 'store_query_failed'; readonly id: string; readonly error: unknown }
  /** A batch of records was answered; `repeated`: it had been stored before. */
  | {
      readonly type: 'batch_received';
      readonly kind: LogKind;
      readonly accepted: number;
      readonly rejected: Readonly<Record<string, number>>;
      readonly repeated: boolean;
    }
  /** Records can be seen. */
  | { readonly type: 'records_applied'; readonly kind: LogKind; readonly count: number }
  | { readonly type: 'record_quarantined'; readonly kind: LogKind; readonly reason: string }
  | { readonly type: 'apply_failed'; readonly error: unknown }
  | { readonly type: 'apply_recovered'; readonly failures: number }
  | { readonly type: 'flush_failed'; readonly kind: LogKind; readonly error: unknown }
  | { readonly type: 'spool_write_failed'; readonly error: unknown }
  /** The store is out of reach, or lacks something, so that queries cannot be answered; it is looked at again. */
  | { readonly type: 'store_unavailable'; readonly error: unknown }
  | { readonly type: 'store_available' }
  | {
      readonly type: 'spool_truncated';
      readonly path: string;
      readonly lostBytes: number;
      readonly isTorn: boolean;
    }
  | { readonly type: 'quarantine_failed'; readonly error: unknown }
  | { readonly type: 'records_expired'; readonly count: number }
  | { readonly type: 'retention_failed'; readonly error: unknown }
  /** The store merged parts. */
  | { readonly type: 'compacted' }
  | { readonly type: 'compaction_failed'; readonly error: unknown }
  /** The store made its file smaller. */
  | { readonly type: 'vacuumed' }
  | { readonly type: 'vacuum_failed'; readonly error: unknown }
  | { readonly type: 'clock_jumped'; readonly seconds: number };

export type Observe = (event: Event) => void;
