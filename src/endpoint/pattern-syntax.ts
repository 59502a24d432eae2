// Parses regular expressions in RE2 syntax into a tree. The engine validates the syntax, so this parser is lenient: it only has
// to understand every valid expression.

/** Code points as flat pairs of first and last: [97, 122] is a-z. */
export type Ranges = readonly number[];

export type PatternNode =
  /** One character of a set. `isUnicodeClass`: the set contains a class such as \pL, whose ranges are not known here. */
  | { readonly type: 'set'; readonly ranges: Ranges; readonly isUnicodeClass: boolean }
  /** The start of the text. */
  | { readonly type: 'begin' }
  | { readonly type: 'concat'; readonly nodes: readonly PatternNode[] }
  | { readonly type: 'alternate'; readonly nodes: readonly PatternNode[] }
  | { readonly type: 'repeat'; readonly node: PatternNode; readonly min: number; readonly max: number };

/** The flags of RE2 that change which characters match. */
interface Flags {
  readonly ignoreCase: boolean;
  readonly multiLine: boolean;
}

const MAX_CODE_POINT = 0x10ffff;
const ANY: Ranges = [0, MAX_CODE_POINT];
/** Approximates a Unicode class: ASCII letters and everything beyond ASCII. */
const UNICODE_CLASS: Ranges = [0x41, 0x5a, 0x61, 0x7a, 0x80, MAX_CODE_POINT];
const DIGIT: Ranges = [0x30, 0x39];
const SPACE: Ranges = [0x09, 0x0a, 0x0c, 0x0d, 0x20, 0x20];
const WORD: Ranges = [0x30, 0x39, 0x41, 0x5a, 0x5f, 0x5f, 0x61, 0x7a];

const PERL_CLASSES: Readonly<Record<string, Ranges>> = {
  d: DIGIT,
  D: invert(DIGIT),
  s: SPACE,
  S: invert(SPACE),
  w: WORD,
  W: invert(WORD),
};

const POSIX_CLASSES: Readonly<Record<string, Ranges>> = {
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

const CONTROL_ESCAPES: Readonly<Record<string, number>> = { a: 7, f: 12, n: 10, r: 13, t: 9, v: 11 };

const EMPTY: PatternNode = { type: 'concat', nodes: [] };

/** Returns undefined for an expression that this parser does not understand. */
export function parsePattern(pattern: string): PatternNode | undefined {
  const parser = new Parser(pattern);
  try {
    return parser.parse();
  } catch (error) {
    if (error instanceof PatternSyntaxError) return undefined;
    throw error;
  }
}

class PatternSyntaxError extends Error {}

/** Part of a class: its ranges, and whether it is a Unicode class. */
interface ClassPart {
  readonly ranges: Ranges;
  readonly isUnicodeClass: boolean;
}

class Parser {
  readonly #text: string;
  #index = 0;
  #flags: Flags = { ignoreCase: false, multiLine: false };

  constructor(text: string) {
    this.#text = text;
  }

  parse(): PatternNode {
    const node = this.#alternatives();
    if (this.#index < this.#text.length) throw new PatternSyntaxError();
    return node;
  }

  /** Flags that are set inside a group end with the group. */
  #alternatives(): PatternNode {
    const outerFlags = this.#flags;
    const branches = [this.#sequence()];
    while (this.#take('|')) branches.push(this.#sequence());
    this.#flags = outerFlags;
    return branches.length === 1 ? (branches[0] ?? EMPTY) : { type: 'alternate', nodes: branches };
  }

  #sequence(): PatternNode {
    const nodes: PatternNode[] = [];
    while (this.#index < this.#text.length && !this.#at('|') && !this.#at(')')) {
      if (this.#take('\\Q')) nodes.push(...this.#quoted());
      else nodes.push(this.#quantified(this.#atom()));
    }
    return { type: 'concat', nodes };
  }

  /** The characters up to \E. An operator after \E repeats the last one. */
  #quoted(): PatternNode[] {
    const end = this.#text.indexOf('\\E', this.#index);
    const quoted = this.#text.slice(this.#index, end === -1 ? undefined : end);
    this.#index = end === -1 ? this.#text.length : end + 2;
    const nodes = [...quoted].map(character => this.#literal(character.codePointAt(0) ?? 0));
    const last = nodes.pop();
    return last === undefined ? [] : [...nodes, this.#quantified(last)];
  }

  #quantified(atom: PatternNode): PatternNode {
    let node = atom;
    for (;;) {
      const counts = this.#match(/\{(\d+)(,?)(\d*)\}\??/y);
      if (counts !== undefined) {
        const [, min = '', comma, max] = counts;
        const upper = comma === '' ? Number(min) : max === '' ? Number.POSITIVE_INFINITY : Number(max);
        node = { type: 'repeat', node, min: Number(min), max: upper };
        continue;
      }
      const operator = this.#match(/([*+?])\??/y)?.[1];
      if (operator === undefined) return node;
      const max = operator === '?' ? 1 : Number.POSITIVE_INFINITY;
      node = { type: 'repeat', node, min: operator === '+' ? 1 : 0, max };
    }
  }

  #atom(): PatternNode {
    if (this.#take('(')) return this.#group();
    if (this.#take('[')) return this.#class();
    if (this.#take('.')) return { type: 'set', ranges: ANY, isUnicodeClass: false };
    if (this.#take('^')) return this.#flags.multiLine ? EMPTY : { type: 'begin' };
    if (this.#take('$')) return EMPTY;
    if (this.#take('\\A')) return { type: 'begin' };
    if (this.#match(/\\[bBz]/y)) return EMPTY;
    if (this.#take('\\C')) return { type: 'set', ranges: ANY, isUnicodeClass: false };
    const named = this.#namedClass();
    if (named !== undefined) return { type: 'set', ...named };
    return this.#literal(this.#character());
  }

  #group(): PatternNode {
    const outerFlags = this.#flags;
    const flags = this.#match(/\?([imsU]*)(?:-([imsU]*))?([:)])/y);
    if (flags !== undefined) {
      const [, on = '', off = '', end] = flags;
      this.#flags = {
        ignoreCase: (outerFlags.ignoreCase || on.includes('i')) && !off.includes('i'),
        multiLine: (outerFlags.multiLine || on.includes('m')) && !off.includes('m'),
      };
      if (end === ')') return EMPTY; // the flags apply to the rest of the enclosing group
    } else if (this.#match(/\?P?<\w+>/y) === undefined && this.#at('?')) throw new PatternSyntaxError();
    const node = this.#alternatives();
    if (!this.#take(')')) throw new PatternSyntaxError();
    this.#flags = outerFlags;
    return node;
  }

  #class(): PatternNode {
    const isNegated = this.#take('^');
    const ranges: number[] = [];
    let isUnicodeClass = false;
    for (let isFirst = true; isFirst || !this.#at(']'); isFirst = false) {
      const part = this.#classPart();
      ranges.push(...part.ranges);
      isUnicodeClass ||= part.isUnicodeClass;
    }
    this.#take(']');
    const folded = this.#flags.ignoreCase ? foldCase(ranges) : ranges;
    return { type: 'set', ranges: isNegated ? invert(folded) : folded, isUnicodeClass };
  }

  #classPart(): ClassPart {
    const posix = this.#match(/\[:(\^?)(\w+):\]/y);
    if (posix !== undefined) {
      const found = POSIX_CLASSES[posix[2] ?? ''];
      if (found === undefined) throw new PatternSyntaxError();
      return { ranges: posix[1] === '^' ? invert(found) : found, isUnicodeClass: false };
    }
    const named = this.#namedClass();
    if (named !== undefined) return named;
    const first = this.#character();
    const isRange = this.#at('-') && this.#text[this.#index + 1] !== ']';
    if (!isRange) return { ranges: [first, first], isUnicodeClass: false };
    this.#take('-');
    const last = this.#character();
    if (last < first) throw new PatternSyntaxError();
    return { ranges: [first, last], isUnicodeClass: false };
  }

  /** \d and the like, and Unicode classes. */
  #namedClass(): ClassPart | undefined {
    if (this.#match(/\\[pP](?:\{[^}]*\}|[A-Z])/y)) return { ranges: UNICODE_CLASS, isUnicodeClass: true };
    const perl = this.#match(/\\([dDsSwW])/y)?.[1];
    const ranges = perl === undefined ? undefined : PERL_CLASSES[perl];
    return ranges === undefined ? undefined : { ranges, isUnicodeClass: false };
  }

  /** A literal character or an escaped one. */
  #character(): number {
    const hexadecimal = this.#match(/\\x(?:\{([0-9A-Fa-f]+)\}|([0-9A-Fa-f]{2}))/y);
    if (hexadecimal !== undefined) return Number.parseInt(hexadecimal[1] ?? hexadecimal[2] ?? '', 16);
    const octal = this.#match(/\\(0[0-7]{0,2}|[1-7][0-7]{1,2})/y)?.[1];
    if (octal !== undefined) return Number.parseInt(octal, 8);
    const control = this.#match(/\\([afnrtv])/y)?.[1];
    if (control !== undefined) return CONTROL_ESCAPES[control] ?? 0;
    if (this.#match(/\\(?=[\w]|$)/y)) throw new PatternSyntaxError();
    this.#take('\\');
    const codePoint = this.#text.codePointAt(this.#index);
    if (codePoint === undefined) throw new PatternSyntaxError();
    this.#index += codePoint > 0xffff ? 2 : 1;
    return codePoint;
  }

  #literal(codePoint: number): PatternNode {
    const ranges = [codePoint, codePoint];
    const folded = this.#flags.ignoreCase ? foldCase(ranges) : ranges;
    return { type: 'set', ranges: folded, isUnicodeClass: false };
  }

  #at(text: string): boolean {
    return this.#text.startsWith(text, this.#index);
  }

  #take(text: string): boolean {
    if (!this.#at(text)) return false;
    this.#index += text.length;
    return true;
  }

  /** `expression` has the flag y, so it matches only at the current index. */
  #match(expression: RegExp): RegExpExecArray | undefined {
    expression.lastIndex = this.#index;
    const found = expression.exec(this.#text) ?? undefined;
    this.#index += found?.[0].length ?? 0;
    return found;
  }
}

/** All code points that are not in the ranges. */
function invert(ranges: Ranges): Ranges {
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
function foldCase(ranges: Ranges): Ranges {
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
