// The columns of a kind's tables in DuckDB.
import { columnsOf, type LogKind } from '../../domain/log-columns.ts';

/** The column definitions of a part. */
export function tableColumns(kind: LogKind): string {
  return columnsOf(kind)
    .map(({ name, duckdb }) => `${name} ${duckdb}`)
    .join(', ');
}

/** The same columns for a table in memory, where DuckDB compresses nothing. */
export function memoryTableColumns(kind: LogKind): string {
  return tableColumns(kind).replaceAll(' using compression zstd', '');
}
