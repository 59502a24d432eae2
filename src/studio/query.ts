// A checked query of Studio: what check-query.ts reads from the parse tree, and what query-sql.ts compiles to SQL. It contains no
// text of the caller except in bound values and in the names of output columns.
import type { LogKind } from '../domain/log-columns.ts';
import type { BoundValue } from '../store/store.ts';
import { type Operation, REPEATS } from './operations.ts';

/** `json`: a value of the metadata, whose type depends on the record. `datetime`: a timestamp that is returned as text. */
export type Type = 'text' | 'number' | 'integer' | 'boolean' | 'timestamp' | 'datetime' | 'json' | 'null';

/** The keys of a value in the metadata. Empty: the metadata. */
export type Path = readonly string[];

export type Value = { readonly type: Type } & (
  | { readonly column: 'id' | 'timestamp' | 'event_message' | 'project' }
  /** The first of these values that the record has. */
  | { readonly paths: readonly Path[] }
  /** A number is bound as its decimal text. */
  | { readonly bound: BoundValue }
  | { readonly operation: Operation; readonly args: readonly Value[] }
);

export interface Query {
  /** Undefined: a table that has no records here. */
  readonly kind: LogKind | undefined;
  /** Objects of the metadata that a record must have. */
  readonly required: readonly Path[];
  readonly where: Value | undefined;
  readonly outputs: readonly { readonly name: string; readonly value: Value }[];
  /** Undefined: a row for each record. */
  readonly groups: readonly Value[] | undefined;
  readonly having: Value | undefined;
  readonly order: readonly { readonly value: Value; readonly descending: boolean }[];
  /** Undefined: as many rows as a response can have. */
  readonly limit: number | undefined;
  /** Regular expressions, with their positions in the query. */
  readonly patterns: readonly { readonly text: string; readonly at: number | undefined }[];
}

/** Equal for values that are always equal. */
export function keyOf(value: Value): string {
  return JSON.stringify(value, (name, part) => {
    if (typeof part === 'bigint') return String(part);
    return name === 'type' && part === 'datetime' ? 'timestamp' : part;
  });
}

export const AGGREGATES = ['count', 'count distinct', 'sum', 'avg', 'min', 'max'] as const;

export function isAggregate(value: Value): boolean {
  return 'operation' in value && AGGREGATES.some(each => each === value.operation);
}

export function hasAggregate(value: Value): boolean {
  return isAggregate(value) || ('operation' in value && value.args.some(hasAggregate));
}

/** The number of values and operations in the SQL of a value. */
export function sizeOf(value: Value): number {
  if (!('operation' in value)) return 1;
  const [first = 0, ...others] = value.args.map(sizeOf);
  return others.reduce((sum, size) => sum + size, 1 + first * (REPEATS[value.operation] ?? 1));
}
