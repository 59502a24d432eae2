// Rejects regular expressions that would take too long. RE2, which both stores use, takes about 10 ns per byte if the states of its
// automaton fit into its memory. Otherwise it takes about 1 µs, and 20 ns more for each position in the expression at which a match
// can be at the same time. A query cannot be cancelled within a block of 2,048 texts.
import { MAX_PATTERN_SIZE, MAX_SIMPLE_CHOICES, MAX_SIMPLE_SIZE } from '../domain/limits.ts';

/** Queries with more choices run one at a time. */
const MAX_CHEAP_CHOICES = 10;

interface Cost {
  /** How many positions are possible at the same time, weighted by the time that they take. */
  readonly size: number;
  /** With n of them, a text can lead to about 2ⁿ different states. */
  readonly choices: number;
}

const NOTHING: Cost = { size: 0, choices: 0 };
const ASSERTION: Cost = { size: 1, choices: 1 };
/** \b and \B: the states also depend on the character before. */
const WORD_BOUNDARY: Cost = { size: 4, choices: 1 };
/** Such as \pL: hundreds of sequences of bytes. */
const UNICODE_CLASS: Cost = { size: 10, choices: 1 };
/** What a quantifier adds for each optional copy, or for an unlimited number of copies. */
const OPTION: Cost = { size: 2, choices: 1 };

const TOKENS = [
  '\\\\Q(?<quoted>[^]*?)(?:\\\\E|$)',
  '(?<flags>\\(\\?[imsU-]+\\))',
  '(?<open>\\((?:\\?(?:P?<\\w+>|[imsU-]*:))?)',
  '(?<close>\\))',
  '(?<bar>\\|)',
  '(?<quantifier>[*+?]|\\{(?<min>\\d+)(?<max>,?\\d*)\\})\\??',
  '(?<characters>\\[\\^?\\]?(?:\\[:\\^?\\w+:\\]|\\\\[^]|[^\\]\\\\])*\\]|\\\\[pP](?:\\{\\^?\\w+\\}|\\w)|\\\\[dDsSwWCx0-7]|\\.)',
  '(?<assertion>[$^]|\\\\[AzbB])',
  '\\\\?(?<literal>[^])',
];
const TOKEN = new RegExp(TOKENS.join('|'), 'gu');

/** Returns what is too much about an expression, which the store has validated, or undefined. */
export function findPatternExcess(pattern: string): string | undefined {
  if (isPlainText(pattern)) return undefined;
  const { size, choices } = estimateCost(pattern);
  const limit = choices <= MAX_SIMPLE_CHOICES ? MAX_SIMPLE_SIZE : MAX_PATTERN_SIZE;
  return size <= limit
    ? undefined
    : `its size is ${Math.ceil(size)}, at most ${limit} is allowed. Use * or + instead of counts such as {20}, and fewer classes or alternatives`;
}

/** Both stores search for plain text without an automaton. */
export function isPlainText(pattern: string): boolean {
  return /^[^\\^$.|?*+()[\]{}]*$/.test(pattern);
}

/** Whether the states of an allowed expression may not fit into RE2's memory. With up to 12 choices, no such one was found. */
export function isExpensivePattern(pattern: string): boolean {
  return estimateCost(pattern).choices > MAX_CHEAP_CHOICES;
}

/** A literal character, or the cost of anything else. */
type Part = string | Cost;

export function estimateCost(pattern: string): Cost {
  // If only a part of the expression ignores case, a letter is a class of two.
  const isMixed = /\(\?[msU-]*i/.test(pattern.replace(/^\(\?[imsU]+\)/, ''));
  const toPart = (text: string): Part => (isMixed ? classOf('[aA]') : text.toLowerCase());
  /** The open groups, each a list of alternatives. */
  const groups: Part[][][] = [[[]]];
  const add = (...parts: Part[]) =>
    groups
      .at(-1)
      ?.at(-1)
      ?.push(...parts);
  for (const { 0: text, groups: token = {} } of pattern.matchAll(TOKEN)) {
    if (token['quoted'] !== undefined) add(...[...token['quoted']].map(toPart));
    else if (token['open'] !== undefined) groups.push([[]]);
    else if (token['close'] !== undefined) add(combine(groups.pop() ?? []));
    else if (token['bar'] !== undefined) groups.at(-1)?.push([]);
    else if (token['quantifier'] !== undefined) add(repeat(groups.at(-1)?.at(-1)?.pop() ?? NOTHING, token));
    else if (token['characters'] !== undefined) add(classOf(text));
    else if (token['assertion'] !== undefined) add(/b/i.test(text) ? WORD_BOUNDARY : ASSERTION);
    else if (token['literal'] !== undefined) add(toPart(token['literal']));
  }
  return combine(groups.flat());
}

function combine(alternatives: readonly Part[][]): Cost {
  let size = alternatives.length - 1;
  let choices = Math.log2(alternatives.length);
  for (const parts of alternatives) {
    let literal = '';
    for (const part of [...parts, NOTHING]) {
      if (typeof part === 'string') literal += part;
      else {
        size += part.size + countOverlaps(literal);
        choices += part.choices;
        literal = '';
      }
    }
  }
  return { size, choices };
}

/** How many beginnings of the literal a text can end with: 1 for `abc`, 3 for `aaa`. */
function countOverlaps(literal: string): number {
  // The Knuth-Morris-Pratt algorithm: `borders[n]` is the longest beginning of the first n characters that they also end with.
  const borders = [-1];
  const counts = [0];
  for (let length = 1; length <= literal.length; length++) {
    let border = borders[length - 1] ?? -1;
    while (border >= 0 && literal[border] !== literal[length - 1]) border = borders[border] ?? -1;
    borders.push(border + 1);
    counts.push(1 + (counts[border + 1] ?? 0));
  }
  return Math.max(...counts);
}

function repeat(part: Part, { min = '', max = '' }: Record<string, string>): Cost {
  const { size, choices } = typeof part === 'string' ? { size: 1, choices: 0 } : part;
  const isOpen = min === '' || max === ',';
  const copies = Math.max(Number(min), Number(max.slice(1)), isOpen ? 1 : 0);
  const options = isOpen ? 1 : copies - Number(min);
  return {
    size: copies * size + options * OPTION.size,
    choices: copies * choices + options * OPTION.choices,
  };
}

/** A class such as [a-z_], \w or a dot. */
function classOf(text: string): Cost {
  if (/\\[pP]/.test(text)) return UNICODE_CLASS;
  const isWide = text === '.' || /^\[\^|\\[DSWx]|\[:\^|\P{ASCII}/u.test(text);
  const ranges = text.startsWith('[') ? text.replace(/\\?.-\\?.|\\./gs, 'x').length - 2 : 4;
  return { size: 1 + Math.max(isWide ? 6 : 0, ranges) / 4, choices: 1 };
}
