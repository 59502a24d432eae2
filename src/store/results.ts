// What both stores check about a result: its columns, compared with those that the endpoint declares, and its size.
import type { Column, ColumnType } from './store.ts';

export interface AcceptedTypes {
  /** Matches the names of the engine's types that fit a declared type. */
  readonly patterns: Readonly<Record<ColumnType, RegExp>>;
  /** Added to the message for a column of this type. */
  readonly hint?: (type: ColumnType) => string;
}

/** Returns the first difference in one sentence, or undefined. Each store passes the types that it accepts. */
export function findColumnProblem(
  declared: readonly Column[],
  returned: readonly { readonly name: string; readonly type: string }[],
  { patterns, hint = () => '' }: AcceptedTypes,
): string | undefined {
  const names = (columns: readonly { name: string }[]) => columns.map(({ name }) => name).join(', ');
  if (names(declared) !== names(returned))
    return `returns the columns ${names(returned)}, but ${names(declared)} are declared`;
  for (const [index, { name, type }] of declared.entries()) {
    const returnedType = returned[index]?.type ?? '';
    if (!patterns[type].test(returnedType))
      return `returns ${name} as ${returnedType}, which is not a valid type for ${type}${hint(type)}`;
  }
  return undefined;
}

/**
 * The characters of all strings in a row. ClickHouse returns 64-bit integers as strings, so they count too. Other cells are small
 * and do not count.
 */
export function countCharacters(row: readonly unknown[]): number {
  let characters = 0;
  for (const cell of row) if (typeof cell === 'string') characters += cell.length;
  return characters;
}
