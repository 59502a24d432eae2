// A condition on a record: the one model that searches are parsed into, that both stores compile to SQL (condition-sql.ts), and
// from which the text index learns what a record must contain.
import type { LogField } from '../domain/log-fields.ts';

export type Condition =
  | { readonly all: readonly Condition[] }
  | { readonly any: readonly Condition[] }
  | { readonly not: Condition }
  /** The message or the JSON text of the metadata contains this text. Case is ignored, here and in `matches`. */
  | { readonly contains: string }
  /** The whole value consists of these texts, with any text between them. */
  | { readonly field: RecordField; readonly matches: readonly string[] }
  /** The value is a number, or the text of one, for which this is true. `number` is its decimal text. */
  | { readonly field: RecordField; readonly operator: '<' | '<=' | '>' | '>='; readonly number: string }
  /** The record has a value, other than null and the empty text. */
  | { readonly field: RecordField; readonly exists: true };

/**
 * A searchable field, a column of the record, or the path of keys in the metadata. A kind that does not have the column has a
 * value of that name in the metadata instead.
 */
export type RecordField =
  | { readonly searchable: LogField }
  | { readonly column: SearchColumn }
  | { readonly path: readonly string[] };

/** Columns that a condition can name. Those of some kinds only are the extracted columns (domain/log-columns.ts). */
export const SEARCH_COLUMNS = [
  'id',
  'kind',
  'project',
  'event_message',
  'url',
  'function_id',
  'execution_time_ms',
  'status_code',
] as const;
export type SearchColumn = (typeof SEARCH_COLUMNS)[number];

export const NUMBER_COLUMNS: readonly string[] = ['execution_time_ms', 'status_code'];
