// Parses a search expression: words and "phrases" that must all occur, -word to exclude, and field:value for a searchable field
// (domain/log-fields.ts). Errors name the position of the character that they are about.
import { LOG_FIELDS, type LogField } from '../domain/log-fields.ts';

/** Words and phrases that must occur. Each has its own condition in the SQL, so there is a maximum. */
export const MAX_SEARCH_WORDS = 10;
/**
 * The maximum length of a word, a phrase, or a value with wildcards. In the regular expression of a search, a word, a phrase and
 * the text after a wildcard can match at every position of a text. A longer term can exceed the memory of RE2's automaton: RE2
 * then takes seconds for one record of 1 MiB, and a query cannot be cancelled within a block of records. A value without
 * wildcards is compared with the whole text, so it has no such limit.
 */
export const MAX_TERM_CHARACTERS = 128;
/** Wildcards in one value. */
export const MAX_WILDCARDS = 4;
/**
 * The maximum number of wildcards in all included values of a field together, and in all excluded ones. The included values of a
 * field are one regular expression, and so are the excluded ones. The automaton of each tracks the progress in every value. On a
 * block of 2,048 paths of 100 bytes, DuckDB takes up to 30 ms for 16 wildcards, and 3 s for
 * 70 values with 4 wildcards each.
 */
export const MAX_FIELD_WILDCARDS = 16;

export interface SearchTerm {
  /** Undefined: a word or a phrase. */
  readonly field: LogField | undefined;
  /** The text between the wildcards. One element if there is no wildcard. */
  readonly literals: readonly string[];
  readonly isExcluded: boolean;
}

/** The message says what is wrong with an expression, and where: the first character has position 1. */
export class SearchSyntaxError extends Error {}

/** `fields` are those that the expression may use. Throws a SearchSyntaxError. */
export function parseSearchExpression(text: string, fields: readonly LogField[]): SearchTerm[] {
  const parser = new Parser(text, fields);
  const terms: SearchTerm[] = [];
  const wildcards = new WildcardCounter();
  let words = 0;
  for (;;) {
    parser.skipSpace();
    if (parser.isAtEnd) return terms;
    const position = parser.position;
    const term = parser.readTerm();
    checkLength(term, position);
    wildcards.add(term, position);
    if (term.field === undefined && !term.isExcluded && ++words > MAX_SEARCH_WORDS)
      throw new SearchSyntaxError(
        `too many words at character ${position}: at most ${MAX_SEARCH_WORDS} words and phrases are allowed; put words that follow each other into one "phrase"`,
      );
    terms.push(term);
  }
}

function checkLength({ field, literals }: SearchTerm, position: number): void {
  if (field !== undefined && literals.length === 1) return;
  if ([...literals.join('')].length <= MAX_TERM_CHARACTERS) return;
  const what = field === undefined ? 'the word or phrase' : 'the value with a wildcard';
  throw new SearchSyntaxError(
    `${what} at character ${position} is too long: at most ${MAX_TERM_CHARACTERS} characters are allowed; search for a part of it`,
  );
}

class WildcardCounter {
  readonly #counts = new Map<string, number>();

  /** Throws if the field of the term has too many. */
  add({ field, literals, isExcluded }: SearchTerm, position: number): void {
    if (field === undefined) return;
    const name = isExcluded ? `-${field}` : field;
    const count = (this.#counts.get(name) ?? 0) + literals.length - 1;
    this.#counts.set(name, count);
    if (count <= MAX_FIELD_WILDCARDS) return;
    throw new SearchSyntaxError(
      `too many wildcards (*) at character ${position}: at most ${MAX_FIELD_WILDCARDS} are allowed in all values of ${name}; use values without a wildcard, or search in several steps`,
    );
  }
}

const SPACE = /\s/u;
const FIELD_NAME = /^[a-z_]+$/i;

class Parser {
  /** Code points, so that a position counts characters as people do. */
  readonly #characters: readonly string[];
  readonly #fields: readonly LogField[];
  #index = 0;

  constructor(text: string, fields: readonly LogField[]) {
    this.#characters = [...text];
    this.#fields = fields;
  }

  get isAtEnd(): boolean {
    return this.#index >= this.#characters.length;
  }

  /** The position of the next character, from 1. */
  get position(): number {
    return this.#index + 1;
  }

  skipSpace(): void {
    while (!this.isAtEnd && this.#isAtSpace()) this.#index++;
  }

  readTerm(): SearchTerm {
    const isExcluded = this.#peek() === '-';
    if (isExcluded) {
      this.#index++;
      if (this.isAtEnd || this.#isAtSpace())
        throw this.#fail(
          'a word, a phrase or a field must follow the -',
          this.position - 1,
          '; to search for -, write "-"',
        );
    }
    if (this.#peek() === '"') return { field: undefined, literals: [this.#readQuoted('phrase')], isExcluded };
    return { ...this.#readWord(), isExcluded };
  }

  /** A word, or field:value. */
  #readWord(): Omit<SearchTerm, 'isExcluded'> {
    const start = this.position;
    let word = '';
    while (!this.isAtEnd && !this.#isAtSpace()) {
      const character = this.#peek();
      if (character === '"')
        throw this.#fail('a quote is inside a word', this.position, '; put the whole text in quotes');
      this.#index++;
      if (character === ':' && FIELD_NAME.test(word)) return this.#readField(word, start);
      word += character;
    }
    return { field: undefined, literals: [word] };
  }

  #readField(name: string, start: number): Omit<SearchTerm, 'isExcluded'> {
    const field = this.#fields.find(known => known === name.toLowerCase());
    if (field === undefined) throw this.#unknownField(name, start);
    const valueStart = this.position;
    const literals = this.#peek() === '"' ? [this.#readQuoted('value')] : this.#readValue(name);
    if (field === 'status') return { field, literals: [this.#checkStatus(literals, valueStart)] };
    if (literals.length - 1 > MAX_WILDCARDS)
      throw this.#fail(`the value has more than ${MAX_WILDCARDS} wildcards (*)`, valueStart, '');
    return { field, literals };
  }

  #unknownField(name: string, start: number): SearchSyntaxError {
    const reason = LOG_FIELDS.some(known => known === name.toLowerCase())
      ? `the selected log kind has no field ${name}`
      : `there is no field ${name}`;
    const fields = this.#fields.length === 0 ? 'none' : this.#fields.join(', ');
    return this.#fail(
      reason,
      start,
      `; allowed fields: ${fields}. To search for text with a colon, put it in quotes`,
    );
  }

  /** A value without quotes. An asterisk matches any text. */
  #readValue(name: string): string[] {
    const start = this.#index;
    while (!this.isAtEnd && !this.#isAtSpace()) {
      if (this.#peek() === '"')
        throw this.#fail('a quote is inside a value', this.position, '; put the whole value in quotes');
      this.#index++;
    }
    if (this.#index === start) throw this.#fail(`${name}: has no value`, start + 1, '');
    return this.#characters.slice(start, this.#index).join('').split(/\*+/);
  }

  /** In quotes, \" is a quote and \\ is a backslash. */
  #readQuoted(what: 'phrase' | 'value'): string {
    const start = this.position;
    this.#index++;
    let text = '';
    for (; !this.isAtEnd; this.#index++) {
      const character = this.#peek();
      if (character === '"') break;
      const following = this.#characters[this.#index + 1];
      const isEscape = character === '\\' && (following === '"' || following === '\\');
      if (isEscape) this.#index++;
      text += isEscape ? following : character;
    }
    if (this.isAtEnd) throw this.#fail('the quote is not closed', start, '');
    this.#index++;
    if (text === '') throw this.#fail(`the ${what} is empty`, start, '');
    if (!this.isAtEnd && !this.#isAtSpace())
      throw this.#fail('a space must follow the closing quote', this.position, '');
    return text;
  }

  /** Returns the code, such as 503, or the class in lower case, such as 5xx. */
  #checkStatus(literals: readonly string[], start: number): string {
    const [status = ''] = literals;
    if (literals.length === 1 && /^[1-5](?:\d\d|xx)$/i.test(status)) return status.toLowerCase();
    throw this.#fail(
      'the value of status is not a status code',
      start,
      '; allowed: a code such as 503, or a class such as 5xx',
    );
  }

  #peek(): string | undefined {
    return this.#characters[this.#index];
  }

  #isAtSpace(): boolean {
    return SPACE.test(this.#peek() ?? '');
  }

  #fail(problem: string, position: number, advice: string): SearchSyntaxError {
    return new SearchSyntaxError(`${problem} at character ${position}${advice}`);
  }
}
