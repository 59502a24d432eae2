// The contract that every store implements. A store knows records and SQL; it knows no endpoint, cache or HTTP.
import type { ErasedRecords } from '../domain/erased.ts';
import type { LogKind } from '../domain/log-columns.ts';
import type { LogLines } from '../domain/log-line.ts';
import type { Observe } from '../observe/event.ts';
import type { TarFile } from '../system/tar.ts';
import type { ParameterRules } from './query-parameters.ts';
import type { RequiredText } from './required-text.ts';

export type StoreName = 'duckdb' | 'clickhouse';

/** A value bound to a named parameter of a saved query. */
export type BoundValue =
  | { readonly type: 'text'; readonly value: string | null }
  | { readonly type: 'texts'; readonly value: readonly string[] }
  | { readonly type: 'integer'; readonly value: number | null }
  | { readonly type: 'boolean'; readonly value: boolean | null }
  /** Unix microseconds, UTC. */
  | { readonly type: 'timestamp'; readonly value: bigint | null };

export type BoundValues = Readonly<Record<string, BoundValue>>;

/**
 * `json` is JSON text, returned as it is stored. `unix_microseconds` and `utc_datetime` have the same SQL type and differ only
 * in the response.
 */
export type ColumnType = 'text' | 'integer' | 'number' | 'json' | 'unix_microseconds' | 'utc_datetime';

export interface Column {
  readonly name: string;
  readonly type: ColumnType;
}

/** The SQL of an endpoint for one store: one SELECT with named parameters. */
export interface SavedQuery {
  readonly sql: string;
  readonly columns: readonly Column[];
  readonly maxRows: number;
}

/**
 * A string for text and json, a number for integer and number, a bigint with Unix microseconds for both timestamps. An integer
 * that is not a safe integer of JavaScript is a bigint, too.
 */
export type Cell = string | number | bigint | null;

export interface QueryResult {
  /** Cells in the order of the query's columns, at most its maxRows rows. */
  readonly rows: readonly (readonly Cell[])[];
  /** There were more rows than maxRows. */
  readonly truncated: boolean;
  /** Rows are missing, because they would have exceeded `QueryOptions.maxBytes`. */
  readonly exceedsMaxBytes: boolean;
  /** Time in the queue. */
  readonly queuedMs: number;
  /** Time in the engine. */
  readonly executedMs: number;
  /** Damaged or missing parts of the embedded store whose records the result lacks. Undefined: none. */
  readonly missingParts?: number | undefined;
}

/** Timestamps in Unix microseconds, both inclusive. Undefined: no limit. */
export interface TimeRange {
  readonly start?: bigint | undefined;
  readonly end?: bigint | undefined;
}

export interface QueryOptions {
  /** When it aborts, the store cancels the query and throws the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /**
   * Who waits for the query, such as the hashes of tokens: callers take turns. Others can join while the query waits; they then
   * call `onJoin`, which the store sets. If it is empty, this is a background query, which runs after all others.
   */
  readonly callers?: { readonly ids: ReadonlySet<string>; onJoin?: (() => void) | undefined } | undefined;
  /** Expensive queries run one at a time. The embedded store makes those expensive that were short of memory. */
  readonly isExpensive?: boolean | undefined;
  /** When its request has to end, as from performance.now(). The limit of the store for each query holds too. */
  readonly endsAt?: number | undefined;
  /**
   * For the store's query log: the endpoint name, then the request id (if there is a request) or `warming`. For queries of no
   * endpoint: `metrics` or `migrate`. Contains no parameter value and no token.
   */
  readonly label?: string | undefined;
  /**
   * Limits the memory of the result: the store stops reading before the texts of all rows together exceed this many characters.
   * It counts characters, not bytes. A character takes at least one byte in the response, so if the whole response has at most
   * `maxBytes` bytes, no row is left out.
   */
  readonly maxBytes?: number | undefined;
  /** The query needs only records of this range, which its own conditions select. The embedded store skips all other parts. */
  readonly range?: TimeRange | undefined;
  /**
   * The query needs only records that satisfy this, which its own conditions select. The embedded store skips blocks of parts that
   * cannot. Pass the same object with all queries of a search: the store remembers for it what it can skip.
   */
  readonly requiredText?: RequiredText | undefined;
}

/** Records that are durable in the spool. */
export interface SpooledLines extends LogLines {
  /** The sequence number of the first record. Each kind has its own sequence. */
  readonly firstSequence: number;
}

/** Identifies content that is loaded into the store, such as a file. */
export interface LoadIdentity {
  /** What the content is loaded as, such as its log kind. The same bytes with a different source count as different content. */
  readonly source: string;
  /** SHA-256 of the content. */
  readonly digest: string;
  /** Size of its file, which may be compressed. */
  readonly fileBytes: number;
}

/** What `append` needs to know about the content that it loads, so that the content is not loaded twice. */
export interface LoadContent {
  /** Called after all batches were read, when the digest is known. */
  identify(): LoadIdentity;
  readonly nowMicros: bigint;
  /** Load the content although it was loaded before. */
  readonly again: boolean;
  /** The batches have only the records of the content that were erased since this load of it. */
  readonly restores?: EarlierLoad | undefined;
}

/** A load that the store remembers. */
export interface EarlierLoad {
  readonly digest: string;
  readonly records: number;
  readonly loadedAtMicros: bigint;
  /** What was erased since. */
  readonly erased: readonly ErasedRecords[];
}

/** The records that an erasure removes. */
export interface EraseScope {
  readonly project: string;
  /** Only records with an earlier timestamp, in Unix microseconds. Undefined: all. */
  readonly beforeMicros?: bigint | undefined;
}

/** What the files of a store contain. */
export interface StoreContent {
  /** How many records of each kind they have. */
  readonly records: ReadonlyMap<LogKind, number>;
  /** See Store.durableUpTo. */
  durableUpTo(kind: LogKind): number;
}

/** The files of a store at one moment. They are open, so they can be read even after the store has deleted them. */
export interface StoreSnapshot {
  /** Their paths are relative to the data directory. */
  readonly files: readonly TarFile[];
  /** Call it when the files were read, or are no longer needed. Can be called twice. */
  close(): Promise<void>;
}

/** What a store reports and no method returns. */
export interface StoreCallbacks {
  /** Gets the events about flushes and parts of the embedded store. */
  readonly observe?: Observe;
  /** The store cannot store this line because of its content. It stores the other lines. `reason` is the engine's message. */
  readonly recordRejected?: (rejected: {
    readonly kind: LogKind;
    readonly line: string;
    readonly reason: string;
  }) => void;
  /**
   * Only the embedded store: it cannot tell which of its records are durable, or its engine has failed. All later writes fail until
   * the store is opened again. No acknowledged record is lost.
   */
  readonly storeFailed?: (error: unknown) => void;
}

export interface StoreStatistics {
  readonly waitingQueries: number;
  readonly runningQueries: number;
  /** Whether any host of a remote store was up when it was last tried. The embedded store is always reachable. */
  readonly isReachable: boolean;
  /** Only the embedded store. */
  readonly embedded?: {
    readonly fileBytes: number;
    readonly activeMemtables: number;
    readonly immutableMemtables: number;
    readonly partCountByKind: ReadonlyMap<LogKind, number>;
    /** Damaged or missing parts. */
    readonly setAsideParts: number;
  };
  /** Only ClickHouse. */
  readonly clickhouse?: {
    /** By host and port. */
    readonly isUpByHost: ReadonlyMap<string, boolean>;
    readonly outboxRecords: number;
  };
}

/** Times in Unix microseconds. */
export interface Expiry {
  /** Earlier records have expired. Queries do not return them. */
  readonly expiredBefore: bigint;
  /** Earlier records must leave the disk, even if a part has to be rewritten. Not later than `expiredBefore`. */
  readonly rewriteBefore: bigint;
}

/**
 * - `expire` deletes expired records. Those that expired recently may stay on disk, and queries do not return them. It also rewrites
 *   parts, one of each kind, and reports those that cannot be rewritten as events.
 * - `evictTo` removes the oldest parts until the others use at most this many bytes.
 * - `compact` merges some parts, if that makes queries faster; then call it again. For 10 minutes after a failure, later calls skip
 *   the kind that failed.
 */
export type MaintenanceTask = 'compact' | { readonly expire: Expiry } | { readonly evictTo: number };

/** Methods can be called concurrently unless they say otherwise. After `close`, queries and writes throw `unavailable`. */
export interface Store {
  readonly name: StoreName;

  /** Current numbers for metrics. Reads only memory and the size of files. */
  readStatistics(): StoreStatistics;

  // Queries

  /**
   * Checks that a remote store is ready to serve. Returns what is missing (tables, permissions) in one sentence, or undefined.
   * Throws if that cannot be checked now, such as if the store is unreachable.
   */
  preflight(): Promise<string | undefined>;

  /**
   * Checks that a saved query is one SELECT, uses its parameters as the rules say and returns the declared columns. Does not
   * return rows. Returns what is wrong in one sentence, or undefined.
   */
  validateQuery(query: SavedQuery, rules: ParameterRules): Promise<string | undefined>;

  /**
   * Checks a regular expression in the engine that will run it. Returns what is wrong, in the engine's words, or undefined.
   * Throws as `query` does.
   */
  validatePattern(pattern: string, options?: QueryOptions): Promise<string | undefined>;

  /**
   * Runs a saved query, read-only. Ignores values that its SQL does not use.
   * Throws `unavailable` if the queue is full or the query waited too long, and `query_timeout` if it ran out of time.
   */
  query(query: SavedQuery, values: BoundValues, options?: QueryOptions): Promise<QueryResult>;

  /**
   * Returns the timestamp, in Unix microseconds, of the newest record of a kind (and of `project`, if given) that is not later
   * than `notAfter`. Returns undefined if there is none. A query that starts afterwards sees that record. Throws as `query` does.
   */
  newestTimestamp(
    kind: LogKind,
    notAfter: bigint,
    project?: string,
    options?: QueryOptions,
  ): Promise<bigint | undefined>;

  // Records

  /**
   * Stores all records of all batches, without the spool. They are durable when this resolves. If the iterable throws, this
   * throws and stores nothing. If a record is rejected because of its content, the embedded store throws and stores nothing, and
   * ClickHouse stores the others (`recordRejected`). If a store without transactions fails for another reason, its error says
   * how much it stored.
   *
   * If `content` was loaded into an embedded store before and `content.again` is false, stores nothing and returns that load.
   * Other stores load it again.
   */
  append(batches: AsyncIterable<LogLines>, content?: LoadContent): Promise<EarlierLoad | undefined>;

  /** Returns the earlier loads of a `LoadIdentity.source` from files of this size. Only the embedded store remembers loads. */
  findLoadsOfSize(source: string, fileBytes: number): readonly EarlierLoad[];

  /**
   * Stores records from the spool. Queries see them when this resolves. Skips records that were applied before, so the caller
   * can retry after an error. Calls for one kind must not overlap.
   */
  apply(records: SpooledLines): Promise<void>;

  /** The recommended size of the lines in one call of `apply`. */
  readonly applyBatchBytes: number;

  /**
   * Makes all applied records of these kinds durable in the store. If it throws, they are still in the spool, and a later call
   * retries them, whatever its kinds are. In the first 5 s after a failure, a call throws without a retry.
   */
  flush(kinds: readonly LogKind[]): Promise<void>;

  /**
   * Records of a kind with a lower sequence number are durable in the store's tables, so the spool can delete them: the embedded
   * store has read them back from disk, or ClickHouse has acknowledged them.
   * "UpTo" is exclusive in every name: the number is the first one that is not included.
   */
  flushedUpTo(kind: LogKind): number;

  /**
   * The store itself, without the spool, has the records of a kind up to this sequence number on disk: in its tables or in its
   * outbox. Never lower than `flushedUpTo`. The spool numbers new records from here or higher.
   */
  durableUpTo(kind: LogKind): number;

  // Maintenance

  /**
   * Runs one task in the background of other work. Returns how many records it removed or merged; 0 if there was nothing to do. Throws
   * if it fails, such as on a full disk; no other record is affected. ClickHouse does all of this itself and returns 0.
   */
  maintain(task: MaintenanceTask): Promise<number>;

  /**
   * Erases the flushed records of a project, and their text in the store's files. Records that are stored while it runs may stay.
   * Returns the number of erased records. Safe to repeat: if it throws or the process is killed, some records may be erased.
   */
  eraseProject(scope: EraseScope): Promise<number>;

  /**
   * The store's files at this moment, for a backup, without the parts whose SHA-256 is in `omitted`. Synchronous: the caller takes
   * the content of the spool at the same moment. Delays no other work of the store.
   */
  snapshot(omitted: ReadonlySet<string>): StoreSnapshot;

  /**
   * Cancels queries, `maintain` and `eraseProject`. Waits for other writes that have started;
   * ClickHouse aborts an insert of `apply` after 5 s. Then closes every connection. Can be called twice.
   */
  close(): Promise<void>;
}
