// A validated log record. logs/record.ts creates it; log-line.ts encodes it for the spool and the stores.

export interface LogRecord {
  readonly id: string;
  /** Unix microseconds, UTC. */
  readonly timestampMicros: number;
  readonly project: string;
  readonly eventMessage: string;
  /** JSON text of an object, kept as text so that no store rewrites a number in it. */
  readonly metadata: string;
  /** Values of the kind's extracted columns (log-columns.ts), in the order of the columns. */
  readonly extracted: EdgeFields | FunctionEdgeFields | Record<never, never>;
}

export interface EdgeFields {
  readonly url: string;
  readonly path: string;
}

export interface FunctionEdgeFields {
  readonly function_id: string | null;
  readonly execution_time_ms: number | null;
  readonly status_code: number | null;
}
