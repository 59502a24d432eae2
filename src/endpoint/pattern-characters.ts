// The sets of characters that a regular expression in RE2 syntax can name, as ranges of code points.

/** Code points as flat pairs of first and last: [97, 122] is a-z. */
export type Ranges = readonly number[];

export const MAX_CODE_POINT = 0x10ffff;
export const ANY: Ranges = [0, MAX_CODE_POINT];
export const LINE_BREAK: Ranges = [0x0a, 0x0a];
export const ANY_IN_LINE: Ranges = invert(LINE_BREAK);
const DIGIT: Ranges = [0x30, 0x39];
const SPACE: Ranges = [0x09, 0x0a, 0x0c, 0x0d, 0x20, 0x20];
export const WORD: Ranges = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];

export const PERL_CLASSES: Readonly<Record<string, Ranges>> = {
  d: DIGIT,
  D: invert(DIGIT),
  s: SPACE,
  S: invert(SPACE),
  w: WORD,
  W: invert(WORD),
};

export const POSIX_CLASSES: Readonly<Record<string, Ranges>> = {
  alnum: [0x30, 0x39, 0x41, 0x5a, 0x61, 0x7a],
  alpha: [0x41, 0x5a, 0x61, 0x7a],
  ascii: [0, 0x7f],
  blank: [0x09, 0x09, 0x20, 0x20],
  cntrl: [0, 0x1f, 0x7f, 0x7f],
  digit: DIGIT,
  graph: [0x21, 0x7e],
  lower: [0x61, 0x7a],
  print: [0x20, 0x7e],
  punct: [0x21, 0x2f, 0x3a, 0x40, 0x5b, 0x60, 0x7b, 0x7e],
  space: [0x09, 0x0d, 0x20, 0x20],
  upper: [0x41, 0x5a],
  word: WORD,
  xdigit: [0x30, 0x39, 0x41, 0x46, 0x61, 0x66],
};

const unicodeClasses = new Map<string, Ranges>();

/**
 * The characters of a general category such as Lu, or of a script such as Greek. Up to U+07FF, every character is tested. To test
 * all others would take too long: only the first of every 64 is tested (from U+20000 on, of every 65,536), and its result applies
 * to all 64 (65,536).
 */
export function unicodeClass(name: string, ignoreCase: boolean): Ranges {
  if (name === 'Any') return ANY;
  const expression = unicodeExpression(name, ignoreCase ? 'iu' : 'u');
  const key = String(expression);
  const ranges = unicodeClasses.get(key) ?? sample(expression);
  unicodeClasses.set(key, ranges);
  return ranges;
}

/**
 * The store has validated the name. If Node does not know it, it is a script of a later version of Unicode, and its characters
 * are unassigned in Node's version. So the set of all unassigned characters replaces the script. The set of all characters
 * (ANY) would be wrong: a larger set can make the automaton smaller, and pattern-cost.ts would then underestimate the cost. For
 * example, (?:ANY|[^a-z]) matches any character and needs fewer states than (?:\p{Name}|[^a-z]).
 */
function unicodeExpression(name: string, flags: string): RegExp {
  for (const property of [name, `Script=${name}`])
    try {
      return new RegExp(`\\p{${property}}`, flags);
    } catch {}
  return new RegExp('\\p{Unassigned}', flags);
}

function sample(expression: RegExp): Ranges {
  const ranges: number[] = [];
  for (let first = 0; first <= MAX_CODE_POINT; ) {
    const next = first + (first < 0x800 ? 1 : first < 0x20000 ? 0x40 : 0x10000);
    if (expression.test(String.fromCodePoint(first))) {
      if (ranges.at(-1) === first - 1) ranges.pop();
      else ranges.push(first);
      ranges.push(next - 1);
    }
    first = next;
  }
  return ranges;
}

/** Sorts ranges, and joins those that overlap or touch. */
export function merge(ranges: Ranges): Ranges {
  return invert(invert(ranges));
}

/** All code points that are not in the ranges. */
export function invert(ranges: Ranges): Ranges {
  const pairs: [number, number][] = [];
  for (let index = 0; index < ranges.length; index += 2)
    pairs.push([ranges[index] ?? 0, ranges[index + 1] ?? 0]);
  pairs.sort(([a], [b]) => a - b);
  const inverted: number[] = [];
  let next = 0;
  for (const [first, last] of pairs) {
    if (first > next) inverted.push(next, first - 1);
    next = Math.max(next, last + 1);
  }
  if (next <= MAX_CODE_POINT) inverted.push(next, MAX_CODE_POINT);
  return inverted;
}

/** Adds the other letter case of ASCII letters. */
export function foldCase(ranges: Ranges): Ranges {
  const folded = [...ranges];
  const shift = (first: number, last: number, from: number, offset: number) => {
    const low = Math.max(first, from);
    const high = Math.min(last, from + 25);
    if (low <= high) folded.push(low + offset, high + offset);
  };
  for (let index = 0; index < ranges.length; index += 2) {
    const [first = 0, last = 0] = [ranges[index], ranges[index + 1]];
    shift(first, last, 0x41, 32);
    shift(first, last, 0x61, -32);
  }
  return folded;
}
