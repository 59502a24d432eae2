// The size of a row, for the limit of a result in memory (QueryOptions.maxBytes).

/**
 * The characters of all strings in a row. ClickHouse returns 64-bit integers as strings, so they count too. Other cells are small
 * and do not count.
 */
export function countCharacters(row: readonly unknown[]): number {
  let characters = 0;
  for (const cell of row) if (typeof cell === 'string') characters += cell.length;
  return characters;
}
