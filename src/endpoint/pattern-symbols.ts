// Divides all characters into equivalence classes, called symbols: two characters are the same symbol if every set of the regular
// expression contains both or neither. So an automaton has a few transitions instead of one for each of a million characters.
import { LINE_BREAK, MAX_CODE_POINT, type Ranges, WORD } from './pattern-characters.ts';
import {
  LINE_BREAK_CHARACTER,
  type Neighbour,
  type Nfa,
  OTHER_CHARACTER,
  WORD_CHARACTER,
} from './pattern-nfa.ts';

export interface Symbols {
  /** The symbols that each node accepts. Indexed by node id. */
  readonly accepted: readonly (readonly number[])[];
  /** Whether each symbol is a line break, a word character or other: this decides assertions next to it. Indexed by symbol. */
  readonly neighbourOf: readonly Neighbour[];
}

export function assignSymbols({ nodes, neighbours }: Nfa): Symbols {
  // The NFA has more than one `Neighbour` only if an assertion depends on the character before or after it.
  const dependsOnNeighbours = neighbours.length > 1;
  const used = new Set<Ranges>(dependsOnNeighbours ? [LINE_BREAK, WORD] : []);
  for (const node of nodes) if (node.type === 'set') used.add(node.ranges);
  // The key of a set is its ranges as text, so that equal sets have equal keys. Each array is converted only once: the copies of
  // a counted repetition share one array, which can be long.
  const keys = new Map([...used].map(ranges => [ranges, ranges.join()]));
  const sets = new Map([...keys].map(([ranges, key]) => [key, ranges]));
  const starts = listStarts([...sets.values()]);
  const intervals = new Map([...sets].map(([key, ranges]) => [key, listIntervals(ranges, starts)]));
  const intervalSymbols = mergeIntervals(starts.length, [...intervals.values()]);
  const bySet = new Map(
    [...intervals].map(([key, found]) => [
      key,
      [...new Set(found.map(interval => intervalSymbols[interval] ?? 0))],
    ]),
  );
  const symbolsOf = (ranges: Ranges) => bySet.get(keys.get(ranges) ?? '') ?? [];
  const symbolCount = Math.max(...intervalSymbols) + 1;
  const neighbourOf = Array.from({ length: symbolCount }, (): Neighbour => OTHER_CHARACTER); // by symbol
  if (dependsOnNeighbours) {
    for (const symbol of symbolsOf(LINE_BREAK)) neighbourOf[symbol] = LINE_BREAK_CHARACTER;
    for (const symbol of symbolsOf(WORD)) neighbourOf[symbol] = WORD_CHARACTER;
  }
  return {
    accepted: nodes.map(node => (node.type === 'set' ? symbolsOf(node.ranges) : [])),
    neighbourOf,
  };
}

/** The bounds of all sets divide the code points into intervals. Returns the first code point of each. */
function listStarts(sets: readonly Ranges[]): number[] {
  const starts = new Set([0]);
  for (const ranges of sets)
    for (const [index, codePoint] of ranges.entries())
      starts.add(index % 2 === 0 ? codePoint : codePoint + 1);
  starts.delete(MAX_CODE_POINT + 1);
  return [...starts].sort((a, b) => a - b);
}

/** The intervals that a set contains, as indexes into `starts`. */
function listIntervals(ranges: Ranges, starts: readonly number[]): number[] {
  const indexes = new Map(starts.map((start, index) => [start, index]));
  const found = new Set<number>();
  for (let index = 0; index < ranges.length; index += 2) {
    const end = indexes.get((ranges[index + 1] ?? 0) + 1) ?? starts.length;
    for (let interval = indexes.get(ranges[index] ?? 0) ?? 0; interval < end; interval++) found.add(interval);
  }
  return [...found];
}

/** Intervals that are in the same sets are one symbol. Returns the symbol of each interval. */
function mergeIntervals(count: number, sets: readonly (readonly number[])[]): number[] {
  const signatures = Array.from({ length: count }, () => '');
  for (const [index, intervals] of sets.entries())
    for (const interval of intervals) signatures[interval] += `${index},`;
  const symbols = new Map([...new Set(signatures)].map((signature, symbol) => [signature, symbol]));
  return signatures.map(signature => symbols.get(signature) ?? 0);
}
