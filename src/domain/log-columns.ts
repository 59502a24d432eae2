// The one table of log kinds and their columns. The tables of both stores, the fields of a log line and the SQL of a
// migration are generated from it.

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

export interface LogColumn {
  readonly name: string;
  /** `timestamp` is Unix microseconds, UTC; `json` is the text of a JSON object. */
  readonly type: 'text' | 'integer' | 'number' | 'timestamp' | 'json';
  readonly nullable: boolean;
  /** The column's definition in a DuckDB table. zstd needs storage version 'latest'; without it the file grows fivefold. */
  readonly duckdb: string;
  /** The column's definition in a ClickHouse table. Every version of ClickHouse compares whole numbers alike. */
  readonly clickhouse: string;
}

const COMMON_COLUMNS: readonly LogColumn[] = [
  {
    name: 'id',
    type: 'text',
    nullable: false,
    duckdb: 'varchar not null',
    clickhouse: 'String codec(ZSTD(1))',
  },
  {
    name: 'timestamp',
    type: 'timestamp',
    nullable: false,
    duckdb: 'timestamp not null',
    clickhouse: 'Int64 codec(Delta, ZSTD(1))',
  },
  {
    name: 'project',
    type: 'text',
    nullable: false,
    duckdb: 'varchar not null',
    clickhouse: 'LowCardinality(String) codec(ZSTD(1))',
  },
  {
    name: 'event_message',
    type: 'text',
    nullable: false,
    duckdb: 'varchar not null using compression zstd',
    clickhouse: 'String codec(ZSTD(3))',
  },
  {
    name: 'metadata',
    type: 'json',
    nullable: false,
    duckdb: 'json not null using compression zstd',
    clickhouse: 'String codec(ZSTD(3))',
  },
];

/** Columns that saved queries filter or count. logs/extracted-fields.ts reads their values from the metadata. */
const EXTRACTED_COLUMNS: Partial<Record<LogKind, readonly LogColumn[]>> = {
  edge: [
    {
      name: 'url',
      type: 'text',
      nullable: false,
      duckdb: 'varchar not null using compression zstd',
      clickhouse: 'String codec(ZSTD(1))',
    },
    {
      name: 'path',
      type: 'text',
      nullable: false,
      duckdb: 'varchar not null',
      clickhouse: 'String codec(ZSTD(1))',
    },
  ],
  function_edge: [
    {
      name: 'function_id',
      type: 'text',
      nullable: true,
      duckdb: 'varchar',
      clickhouse: 'Nullable(String) codec(ZSTD(1))',
    },
    {
      name: 'execution_time_ms',
      type: 'number',
      nullable: true,
      duckdb: 'double',
      clickhouse: 'Nullable(Float64) codec(ZSTD(1))',
    },
    {
      name: 'status_code',
      type: 'integer',
      nullable: true,
      duckdb: 'integer',
      clickhouse: 'Nullable(Int32) codec(ZSTD(1))',
    },
  ],
};

/** The columns of a kind's table, in the order of the table. */
export function columnsOf(kind: LogKind): readonly LogColumn[] {
  return [...COMMON_COLUMNS, ...extractedColumnsOf(kind)];
}

export function extractedColumnsOf(kind: LogKind): readonly LogColumn[] {
  return EXTRACTED_COLUMNS[kind] ?? [];
}
