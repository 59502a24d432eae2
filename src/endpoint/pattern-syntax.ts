// Parses regular expressions in RE2 syntax into a tree. The store's engine has validated the syntax before
// (Store.validatePattern), so this parser is lenient: it only has to understand every valid expression.
import {
  ANY,
  ANY_IN_LINE,
  foldCase,
  invert,
  merge,
  PERL_CLASSES,
  POSIX_CLASSES,
  type Ranges,
  unicodeClass,
} from './pattern-characters.ts';

export type PatternNode =
  /** One character of a set. `isUnicodeClass`: the set is, or contains, a Unicode class such as \pL. */
  | { readonly type: 'set'; readonly ranges: Ranges; readonly isUnicodeClass: boolean }
  /** A condition on the characters before and after a place in the text. */
  | { readonly type: 'assertion'; readonly assertion: Assertion }
  | { readonly type: 'concat'; readonly nodes: readonly PatternNode[] }
  | { readonly type: 'alternate'; readonly nodes: readonly PatternNode[] }
  | { readonly type: 'repeat'; readonly node: PatternNode; readonly min: number; readonly max: number };

export type Assertion =
  | 'text_start'
  | 'text_end'
  | 'line_start'
  | 'line_end'
  | 'word_boundary'
  | 'not_word_boundary';

/** The flags of RE2 that change what matches. */
interface Flags {
  readonly ignoreCase: boolean;
  readonly multiLine: boolean;
  readonly dotMatchesLineBreak: boolean;
}

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
  #flags: Flags = { ignoreCase: false, multiLine: false, dotMatchesLineBreak: false };

  constructor(text: string) {
    this.#text = text;
  }

  parse(): PatternNode {
    const node = this.#alternatives();
    if (this.#index < this.#text.length) throw new PatternSyntaxError();
    return node;
  }

  #alternatives(): PatternNode {
    const branches = [this.#sequence()];
    while (this.#take('|')) branches.push(this.#sequence());
    return branches.length === 1 ? (branches[0] ?? EMPTY) : { type: 'alternate', nodes: branches };
  }

  #sequence(): PatternNode {
    const nodes: PatternNode[] = [];
    while (this.#index < this.#text.length && !this.#at('|') && !this.#at(')')) {
      if (this.#take('\\Q')) nodes.push(...this.#quoted());
      else if (!this.#takeFlags()) nodes.push(this.#quantified(this.#atom()));
    }
    return { type: 'concat', nodes };
  }

  /** The characters up to \E. A quantifier after \E, such as `*`, applies only to the last of these characters. */
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
    if (this.#take('.')) {
      const ranges = this.#flags.dotMatchesLineBreak ? ANY : ANY_IN_LINE;
      return { type: 'set', ranges, isUnicodeClass: false };
    }
    const assertion = this.#assertion();
    if (assertion !== undefined) return { type: 'assertion', assertion };
    if (this.#take('\\C')) return { type: 'set', ranges: ANY, isUnicodeClass: false };
    const named = this.#namedClass();
    if (named !== undefined) return { type: 'set', ...named };
    return this.#literal(this.#character());
  }

  #assertion(): Assertion | undefined {
    if (this.#take('^')) return this.#flags.multiLine ? 'line_start' : 'text_start';
    if (this.#take('$')) return this.#flags.multiLine ? 'line_end' : 'text_end';
    if (this.#take('\\A')) return 'text_start';
    if (this.#take('\\z')) return 'text_end';
    if (this.#take('\\b')) return 'word_boundary';
    if (this.#take('\\B')) return 'not_word_boundary';
    return undefined;
  }

  /** Flags without a group, such as (?i). They apply to the rest of the enclosing group. */
  #takeFlags(): boolean {
    const flags = this.#match(/\(\?([imsU]*)(?:-([imsU]*))?\)/y);
    if (flags === undefined) return false;
    this.#setFlags(flags);
    return true;
  }

  #setFlags([, on = '', off = '']: readonly string[]): void {
    const { ignoreCase, multiLine, dotMatchesLineBreak } = this.#flags;
    const apply = (flag: string, before: boolean) => (before || on.includes(flag)) && !off.includes(flag);
    this.#flags = {
      ignoreCase: apply('i', ignoreCase),
      multiLine: apply('m', multiLine),
      dotMatchesLineBreak: apply('s', dotMatchesLineBreak),
    };
  }

  /** Flags that are set inside a group end with the group. */
  #group(): PatternNode {
    const outerFlags = this.#flags;
    const flags = this.#match(/\?([imsU]*)(?:-([imsU]*))?:/y);
    if (flags !== undefined) this.#setFlags(flags);
    else if (this.#match(/\?P?<\w+>/y) === undefined && this.#at('?')) throw new PatternSyntaxError();
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
    return { type: 'set', ranges: isNegated ? invert(folded) : merge(folded), isUnicodeClass };
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
    const unicode = this.#match(/\\([pP])(?:\{(\^?)(\w+)\}|([A-Z]))/y);
    if (unicode !== undefined) {
      const [, letter, caret = '', longName, shortName = ''] = unicode;
      const found = unicodeClass(longName ?? shortName, this.#flags.ignoreCase);
      const isNegated = (letter === 'P') !== (caret === '^');
      return { ranges: isNegated ? invert(found) : found, isUnicodeClass: true };
    }
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
    if (this.#match(/\\(?=[0-9A-Za-z]|$)/y)) throw new PatternSyntaxError();
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
