// The log kinds and their columns. The tables of both stores, the fields of a log line and the SQL of `dendro migrate` are
// all generated from these definitions.
import { type MetadataField, metadataFieldsOf } from './log-fields.ts';

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

export function isLogKind(text: string | undefined): text is LogKind {
  return LOG_KINDS.some(kind => kind === text);
}

export interface LogColumn {
  readonly name: string;
  /** `timestamp` is Unix microseconds, UTC; `json` is the text of a JSON object. */
  readonly type: 'text' | 'integer' | 'number' | 'timestamp' | 'json';
  readonly nullable: boolean;
  /** Its definition in a DuckDB table. zstd requires storage version 'latest'; without zstd the file is 5 times as large. */
  readonly duckdb: string;
  /**
   * Its definition in a ClickHouse table; of a searchable field, only the type (store/clickhouse/field-columns.ts has the rest).
   * Timestamps are Int64, because all ClickHouse versions compare integers alike.
   */
  readonly clickhouse: string;
}

//     name, type, definition in DuckDB, definition in ClickHouse
const COMMON_COLUMNS: readonly LogColumn[] = [
  column('id', 'text', 'varchar not null', 'String codec(ZSTD(1))'),
  column('timestamp', 'timestamp', 'timestamp not null', 'Int64 codec(Delta, ZSTD(1))'),
  column('project', 'text', 'varchar not null', 'LowCardinality(String) codec(ZSTD(1))'),
  column('event_message', 'text', 'varchar not null using compression zstd', 'String codec(ZSTD(3))'),
  column('metadata', 'json', 'json not null using compression zstd', 'String codec(ZSTD(3))'),
];

/** Columns that saved queries filter or aggregate. logs/record.ts reads their values from the metadata. */
const EXTRACTED_COLUMNS: Partial<Record<LogKind, readonly LogColumn[]>> = {
  edge: [
    column('url', 'text', 'varchar not null using compression zstd', 'String codec(ZSTD(1))'),
    column('path', 'text', 'varchar not null', 'String codec(ZSTD(1))'),
  ],
  function_edge: [
    column('function_id', 'text', 'varchar', 'Nullable(String) codec(ZSTD(1))'),
    column('execution_time_ms', 'number', 'double', 'Nullable(Float64) codec(ZSTD(1))'),
    column('status_code', 'integer', 'integer', 'Nullable(Int32) codec(ZSTD(1))'),
  ],
};

function column(name: string, type: LogColumn['type'], duckdb: string, clickhouse: string): LogColumn {
  return { name, type, nullable: !duckdb.includes('not null'), duckdb, clickhouse };
}

/** The columns of a kind's table, in the order of the table. */
export function columnsOf(kind: LogKind): readonly LogColumn[] {
  return [...lineColumnsOf(kind), ...metadataFieldsOf(kind).map(toFieldColumn)];
}

/** The columns whose values are in a log line. A store computes the others, which are searchable fields, from the metadata. */
export function lineColumnsOf(kind: LogKind): readonly LogColumn[] {
  return [...COMMON_COLUMNS, ...extractedColumnsOf(kind)];
}

export function extractedColumnsOf(kind: LogKind): readonly LogColumn[] {
  return EXTRACTED_COLUMNS[kind] ?? [];
}

function toFieldColumn({ field, column: name }: MetadataField): LogColumn {
  const hasManyValues = field === 'path';
  return column(
    name,
    'text',
    'varchar',
    hasManyValues ? 'Nullable(String)' : 'LowCardinality(Nullable(String))',
  );
}
