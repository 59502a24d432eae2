// What a log record is once it has passed the door: the form that the stores keep. logs/record.ts makes them.

export const LOG_KINDS = [
  'edge',
  'postgres',
  'function_edge',
  'function',
  'auth',
  'realtime',
  'storage',
  'rest',
  'pooler',
] as const;

export type LogKind = (typeof LOG_KINDS)[number];

export interface LogRecord {
  readonly id: string;
  /** Unix microseconds, UTC. */
  readonly timestampMicros: number;
  readonly project: string;
  readonly eventMessage: string;
  /** JSON text of an object, kept as text so that no store rewrites a number in it. */
  readonly metadata: string;
  /** What the saved queries filter and count, extracted out of the metadata. */
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
