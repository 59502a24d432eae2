// Helps with a name that does not exist: finds the known name that was probably meant.

/** "did you mean X?" if a known name is close to the text; otherwise the label and all known names. */
export function suggest(text: string, known: readonly string[], label: string): string {
  const closest = findClosest(text, known);
  return closest === undefined ? `${label}: ${known.join(', ')}` : `did you mean ${closest}?`;
}

/** Undefined if no known name is close to the text. */
export function findClosest(text: string, known: readonly string[]): string | undefined {
  let closest: string | undefined;
  // Up to a third of the characters may be wrong; in a short text, one. With more, the suggestion would be a guess.
  const maxDistance = Math.max(1, Math.floor(text.length / 3));
  let smallest = maxDistance + 1;
  for (const name of known) {
    const distance = countEdits(text.toLowerCase(), name.toLowerCase());
    if (distance >= smallest) continue;
    smallest = distance;
    closest = name;
  }
  return closest;
}

/** The number of characters to add, remove, replace or swap with their neighbour (optimal string alignment distance). */
function countEdits(a: string, b: string): number {
  let beforePrevious: number[] = [];
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column);
  for (let row = 1; row <= a.length; row++) {
    const current = [row];
    for (let column = 1; column <= b.length; column++) {
      const isSame = a[row - 1] === b[column - 1];
      const isSwapped = a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1];
      current[column] = Math.min(
        at(previous, column) + 1,
        at(current, column - 1) + 1,
        at(previous, column - 1) + (isSame ? 0 : 1),
        isSwapped ? at(beforePrevious, column - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [beforePrevious, previous] = [previous, current];
  }
  return at(previous, b.length);
}

function at(distances: readonly number[], column: number): number {
  return distances[column] ?? Number.POSITIVE_INFINITY;
}
