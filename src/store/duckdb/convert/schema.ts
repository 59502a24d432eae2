// The tables in the file of an earlier release.
import { LOG_KINDS, type LogKind } from '../../../domain/log-columns.ts';

/** The newest schema version of dendro.duckdb. */
export const LAST_SCHEMA_VERSION = 4;

/** The names of the table with the flushed sequence numbers: since schema version 4, and in version 3. */
export const FLUSHED_TABLES: readonly string[] = ['flushed_records', 'sealed_records'];

/** The kind whose records a table has, in any version of the schema. Undefined for other tables and temporary ones. */
export function kindOfTable(table: string): LogKind | undefined {
  const name = /^(\w+)_(?:logs|(?:part|compacted|sealed|merged)_\d+)$/.exec(table)?.[1];
  return LOG_KINDS.find(kind => kind === name);
}
