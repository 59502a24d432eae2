// The contract that every store keeps. A store knows records and SQL; it knows no endpoint, no cache and no HTTP.

import type { LogKind } from '../domain/log-columns.ts';
import type { LogLines } from '../domain/log-line.ts';

export type StoreName = 'duckdb' | 'clickhouse';

/** A value bound to a named parameter of a saved query. */
export type BoundValue =
  | { readonly type: 'text'; readonly value: string | null }
  | { readonly type: 'integer'; readonly value: number | null }
  /** Unix microseconds, UTC. */
  | { readonly type: 'timestamp'; readonly value: bigint | null };

export type BoundValues = Readonly<Record<string, BoundValue>>;

/**
 * What a column holds. `json` is JSON text, passed on as it is stored; the two timestamps are kept alike and differ in
 * how an answer writes them.
 */
export type ColumnType = 'text' | 'integer' | 'number' | 'json' | 'unix_microseconds' | 'utc_datetime';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
}

export interface SavedQuery {
  readonly sql: string;
  readonly columns: readonly Column[];
  readonly maxRows: number;
}

/** A cell: text and json as string, integer and number as number, both timestamps as Unix microseconds. */
export type Cell = string | number | bigint | null;

export interface QueryResult {
  /** Cells in the order of the query's columns, at most its maxRows rows. */
  readonly rows: readonly (readonly Cell[])[];
  /** There were more rows than maxRows. */
  readonly truncated: boolean;
  /** Milliseconds in the queue, and in the engine. */
  readonly queuedMs: number;
  readonly executedMs: number;
}

/** How a query is run besides what it asks. */
export interface QueryOptions {
  /** When it aborts, the query is cancelled in the store and the signal's reason thrown. */
  readonly signal?: AbortSignal | undefined;
  /** Read whenever the store chooses what runs next: a query that nobody waits for goes behind all others. */
  readonly priority?: { readonly background: boolean } | undefined;
  /** What it is for, in the store's own log: by this an operator finds it there. Holds no value and no token. */
  readonly label?: string | undefined;
}

/** Records that are durable in the spool. */
export interface SpooledLines extends LogLines {
  /** The number of the first of them among all spooled records of their kind. */
  readonly firstSequence: number;
}

/** What a store tells of its own accord. */
export interface StoreEvents {
  /** A spooled line that the store cannot take for what it holds, in the words of the engine. The others were taken. */
  readonly recordRejected?: (refused: {
    readonly kind: LogKind;
    readonly line: string;
    readonly reason: string;
  }) => void;
  /** Records could not be moved to where they stay; they are safe in the spool, and it will be tried again. */
  readonly flushFailed?: (kind: LogKind, error: unknown) => void;
  /** The store can do nothing more until it is opened anew. What was acknowledged is safe. */
  readonly storeLost?: (error: unknown) => void;
}

export interface Store {
  readonly name: StoreName;

  /** Of a store that lies elsewhere: whether it answered when it was last asked. */
  isReachable?(): boolean;

  /**
   * Of a store that lies elsewhere: what it lacks to serve (tables, rights), in one sentence, or undefined. Throws
   * `unavailable` when it is out of reach.
   */
  preflight?(): Promise<string | undefined>;

  /**
   * Checks a saved query without keeping its rows: one SELECT, its parameters among those of `sample`, its columns as
   * declared. Answers what is wrong, in one sentence, or undefined.
   */
  validateQuery(query: SavedQuery, sample: BoundValues): Promise<string | undefined>;

  /** Says what is wrong with a regular expression, in the words of the engine that will run it, or undefined. */
  validatePattern(pattern: string, call?: QueryOptions): Promise<string | undefined>;

  /**
   * Runs a saved query, read-only. Values that its SQL does not use are ignored.
   * Throws `unavailable` when the queue is full, `query_timeout` when the query was cancelled at the time limit.
   */
  query(query: SavedQuery, values: BoundValues, call?: QueryOptions): Promise<QueryResult>;

  /**
   * When the newest record of a kind (and, where given, of one project) was written, up to a moment; Unix microseconds.
   * A query that starts after this resolves sees that record.
   */
  newest(kind: LogKind, notAfter: bigint, project?: string, call?: QueryOptions): Promise<bigint | undefined>;

  /**
   * Keeps all records of all batches, or none. They are durable when this resolves. A store without transactions keeps
   * none where the batches are at fault; what it kept before it failed itself is told by its error.
   */
  append(batches: AsyncIterable<LogLines>): Promise<void>;

  /**
   * Takes records in from the spool: they can be seen when this resolves. Those that were taken before are passed over,
   * so what failed or was cut short is simply given again.
   */
  apply(records: SpooledLines): Promise<void>;

  /** About as many bytes as one fold should have. */
  readonly applyBatchBytes: number;

  /** How many of a kind's spooled records the store itself keeps durably: the spool may forget these. */
  flushedUpTo(kind: LogKind): number;

  /**
   * The number after the last of a kind's spooled records that the store met: settled, or on its way and sent again after a
   * restart. A new record is numbered behind it.
   */
  seenUpTo(kind: LogKind): number;

  /** Settles all that was folded of these kinds now, rather than when there is enough of it. */
  flush(kinds: readonly LogKind[]): Promise<void>;

  /** Removes the records from before a moment, Unix microseconds; their space is used again. Answers how many. */
  deleteBefore(micros: bigint): Promise<number>;

  /**
   * Lays records anew where that makes queries cheaper, a piece of work at a time, beside everything else. Answers whether
   * there was something to do.
   */
  compact?(nowMicros: bigint): Promise<boolean>;

  /** Ends every connection; running queries are cancelled. Closing twice is fine. */
  close(): Promise<void>;
}
