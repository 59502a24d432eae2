// Compares the columns that a query returns with those that its endpoint declares. Each store passes the types that it accepts.
import type { Column, ColumnType } from './store.ts';

export interface AcceptedTypes {
  /** Matches the names of the engine's types that fit a declared type. */
  readonly patterns: Readonly<Record<ColumnType, RegExp>>;
  /** Added to the message for a column of this type. */
  readonly hint?: (type: ColumnType) => string;
}

/** Returns the first difference in one sentence, or undefined. */
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
