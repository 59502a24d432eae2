// Parses a search expression to a condition on records: words, "phrases", field:value, comparisons, exists:field, -, OR and
// parentheses. A text that looks like a field or an operator but is none is an error, never a word. Errors name the position of the
// character that they are about.
import { findClosest } from '../domain/closest-name.ts';
import {
  MAX_FIELD_WILDCARDS,
  MAX_PATH_KEYS,
  MAX_SEARCH_DEPTH,
  MAX_SEARCH_PATHS,
  MAX_SEARCH_WORDS,
  MAX_TERM_CHARACTERS,
  MAX_WILDCARDS,
} from '../domain/limits.ts';
import { isLogKind, LOG_KINDS } from '../domain/log-columns.ts';
import { LOG_FIELDS, type LogField } from '../domain/log-fields.ts';
import { type Condition, NUMBER_COLUMNS, type RecordField, SEARCH_COLUMNS } from '../store/condition.ts';

/** The message says what is wrong with an expression, and where: the first character has position 1. */
export class SearchSyntaxError extends Error {}

type Match = Extract<Condition, { matches: unknown }>;

/** `fields` are the searchable fields that the expression may use. Throws a SearchSyntaxError. */
export function parseSearchExpression(text: string, fields: readonly LogField[]): Condition {
  return new Parser(text, fields).parse();
}

/** Parses the name of a field, such as the value of a parameter. Throws a SearchSyntaxError. */
export function parseFieldName(text: string): RecordField {
  const field = isName(text) ? findField(text, LOG_FIELDS) : undefined;
  if (field !== undefined) return field;
  throw new SearchSyntaxError(
    `there is no field ${text}; ${suggestFields(text, LOG_FIELDS)}, or a path of up to ${MAX_PATH_KEYS} keys in the metadata, such as request.method or metadata.request_id`,
  );
}

const SPACE = /\s/u;
const PLAIN_KEY = /^[\w-]+$/;
/** In quotes, a key can have any characters. `"*"` is not possible: the embedded store reads it as all keys. */
const KEY = String.raw`[\w-]+|"(?!\*")(?:[^"\\]|\\["\\]|\\(?!["\\]))+"`;
const KEYS = new RegExp(KEY, 'g');
/** A name without a dot, or a path of keys. */
const NAME = new RegExp(String.raw`^[a-z_][\w-]*(?:\.(?:${KEY}))*`, 'i');
/** The first operator in a word, with the texts before and after it. */
const OPERATOR = /^(.*?)(!?[:=<>~≤≥≠：]+)(.*)$/s;
/** So a time, an address, a number or the path of a file is none. */
const LIKE_NAME = /^(?:\$\.|[-@$#^&,;\\])*[\p{L}_]/u;
/** Follows an unknown name only if that was meant as a field. `key=value` is a word. */
const FIELD_OPERATOR = /^(?:!?[~<>]*:|[!<>]=|==.|[<>]-?\d|[=!]~.)/s;
/** A name with a colon, after another character: `/status:500`. */
const NAME_INSIDE = /(?<=[^\p{L}\p{N}_.-])([a-z_]+):/giu;
/** What to write instead. In lower case, they are words if they stand between words. */
const WRONG_OPERATORS: ReadonlyMap<string, string> = new Map([
  ...['AND', '&&'].map(each => [each, ': terms without OR between them must all match'] as const),
  ...['OR', '|', '||'].map(each => [each, '; write OR'] as const),
  ...['NOT', '!'].map(each => [each, '; write -term'] as const),
]);
const OTHER_QUOTE = /^['`‘’‚“”„‹«]/;
const OTHER_MINUS = /^[‐‑‒–—―−]/;
/** The interval of other search languages. */
const INTERVAL = /^[[{]\S*\s+TO\s/;
const COMPARISON = /^(>=|<=|>|<)(.*)$/s;
const RANGE = /^(.*?)\.\.(.*)$/s;
/** Their values never contain a separator of a list. */
const LISTED_FIELDS: readonly LogField[] = ['method', 'function', 'level'];
const NUMBER = /^-?\d{1,40}(?:\.\d{1,40})?(?:e[-+]?\d{1,2})?$/i;

/** A record must match one of the conditions. */
function anyOf(conditions: readonly Condition[]): Condition {
  const [only] = conditions;
  return conditions.length === 1 && only !== undefined ? only : { any: conditions };
}

/** A record must match all terms, but of several values of a field only one: no record has two. */
function allOf(conditions: readonly Condition[]): Condition {
  const values = new Map<string, Match[]>();
  const others: Condition[] = [];
  for (const condition of conditions)
    if ('matches' in condition) {
      const key = JSON.stringify(condition.field);
      values.set(key, [...(values.get(key) ?? []), condition]);
    } else others.push(condition);
  const all = [...[...values.values()].map(anyOf), ...others];
  const [only] = all;
  return all.length === 1 && only !== undefined ? only : { all };
}

class Parser {
  /** Code points, so that a position counts characters as people do. */
  readonly #characters: readonly string[];
  readonly #fields: readonly LogField[];
  readonly #limits = new Limits();
  #index = 0;

  constructor(text: string, fields: readonly LogField[]) {
    this.#characters = [...text];
    this.#fields = fields;
  }

  parse(): Condition {
    this.#skipSpace();
    if (this.#isAtEnd) return { all: [] };
    return this.#readAlternatives(0);
  }

  /** Terms with OR between them, up to the end or a closing parenthesis. Terms without OR belong together. */
  #readAlternatives(depth: number): Condition {
    const alternatives: Condition[][] = [[]];
    let orPosition = 0;
    let previous: Term = EDGE;
    for (;;) {
      this.#skipSpace();
      const terms = alternatives.at(-1) ?? [];
      const isEnd = this.#isAtEnd || this.#peek() === ')';
      if (isEnd && !this.#isAtEnd && depth === 0)
        throw fail('the ) has no matching (', this.#position, '; to search for it, put it in quotes');
      const isOr = !isEnd && this.#isAtWord('OR');
      if ((isEnd || isOr) && terms.length === 0) {
        if (!isOr && orPosition === 0)
          throw fail('there is nothing after the (', this.#position, '; to search for it, put it in quotes');
        const position = isOr ? this.#position : orPosition;
        throw fail('OR needs a term on both sides', position, '; to search for the word, write "OR"');
      }
      if (isEnd) return anyOf(alternatives.map(allOf));
      if (isOr) {
        orPosition = this.#position;
        this.#index += 2;
        alternatives.push([]);
        previous = { text: 'OR', start: orPosition, isWord: false };
        continue;
      }
      const start = this.#index;
      const condition = this.#readTerm(depth);
      const text = this.#characters.slice(start, this.#index).join('');
      const isWord = 'contains' in condition && !/^["(]/.test(text);
      const term = { text, start: start + 1, isWord };
      checkNeighbours(previous, term);
      checkNeighbours(term, previous);
      this.#checkComparison(previous, term);
      terms.push(condition);
      previous = term;
    }
  }

  #readTerm(depth: number): Condition {
    const start = this.#position;
    const isExcluded = this.#peek() === '-';
    if (isExcluded) {
      this.#index++;
      if (this.#isAtEnd || this.#isAtSpace() || this.#peek() === ')')
        throw fail('a word, a phrase, a field or ( must follow the -', start, '; to search for -, write "-"');
    }
    if (this.#peek() === '(') return exclude(this.#readGroup(depth + 1), isExcluded);
    const [word = ''] = /^[a-z]+(?=$|[\s)])/i.exec(this.#rest) ?? [];
    if (isExcluded && isOperatorWord(word)) throw notOperator(word, start + 1);
    const condition = this.#peek() === '"' ? this.#readPhrase() : this.#readWord();
    this.#limits.check(condition, isExcluded, start);
    return exclude(condition, isExcluded);
  }

  #readGroup(depth: number): Condition {
    const start = this.#position;
    if (depth > MAX_SEARCH_DEPTH)
      throw fail(`parentheses are nested more than ${MAX_SEARCH_DEPTH} deep`, start, '');
    this.#index++;
    const condition = this.#readAlternatives(depth);
    if (this.#isAtEnd) throw fail('the ( is not closed', start, '; to search for it, put it in quotes');
    this.#index++;
    this.#expectEnd('the )');
    return condition;
  }

  #readPhrase(): Condition {
    return { contains: this.#readQuoted('phrase') };
  }

  /** A word, or field:value. */
  #readWord(): Condition {
    const start = this.#position;
    const name = this.#readName();
    if (name !== '' && this.#peek() === ':') {
      this.#index++;
      return this.#readField(name, start);
    }
    const word = name + this.#readPlain('word');
    this.#checkWord(word, start);
    return { contains: word };
  }

  /** Throws if the word was probably meant as a field or an operator. */
  #checkWord(word: string, start: number): void {
    const quoted = `; to search for the text, write "${word.replace(/["\\]/g, '\\$&')}"`;
    const [symbol = word] = /^!(?!=)|&&|\|\|/.exec(word) ?? [];
    const advice = WRONG_OPERATORS.get(symbol);
    if (advice !== undefined)
      throw fail(`${symbol} is not an operator`, start + lengthBefore(symbol, word), `${advice}${quoted}`);
    if (/^OR(?:,|-\D)/.test(word)) throw fail('a space must follow OR', start + 2, quoted);
    checkQuote(word, start);
    checkSigns(word, start, quoted);
    for (const { index, 1: name = '' } of word.matchAll(NAME_INSIDE))
      if (isKnownName(name))
        throw fail('a field must follow a space, - or (', start + [...word.slice(0, index)].length, quoted);
    if (INTERVAL.test(word + this.#rest) || /^-?\d+\.\.-?\d+$/.test(word))
      throw fail('a range needs a field before it', start, `, such as status:500..599${quoted}`);
    const [, name = '', operator, value = ''] = OPERATOR.exec(word) ?? [];
    if (operator !== undefined) checkOperator(name, operator, value, start, quoted);
    if (word.includes('*'))
      throw fail(
        '* is a wildcard only in the value of a field',
        start + [...word].indexOf('*'),
        `; a word is also found as a part of another word${quoted}`,
      );
  }

  #readField(name: string, start: number): Condition {
    if (name.toLowerCase() === 'exists') return this.#readExists();
    const field = readFieldName(name, start, this.#fields);
    const valueStart = this.#position;
    if (this.#peek() === '"') return { field, matches: [this.#readQuoted('value')] };
    if (this.#peek() === '(')
      throw fail(
        'a value cannot begin with (',
        valueStart,
        `; write (${name}:a OR ${name}:b), or put the value in quotes`,
      );
    const value = this.#readValue(name);
    checkQuote(value, valueStart);
    const comparison = this.#readComparison(field, value, valueStart);
    if (comparison !== undefined) return comparison;
    if (isStatus(field)) return { field, matches: readStatus(value, valueStart) };
    return this.#readPattern(field, value, valueStart);
  }

  #readExists(): Condition {
    const start = this.#position;
    const name = this.#readName();
    if (name === '') this.#readValue('exists');
    if (name === '' || !this.#isAtTermEnd()) throw fail('exists: needs the name of a field', start, '');
    return { field: readFieldName(name, start, this.#fields), exists: true };
  }

  /** Throws if the words were probably meant as a comparison of SQL. */
  #checkComparison({ text: name }: Term, { text: operator, start }: Term): void {
    const isComparison =
      /^(?:between|like)$/i.test(operator) || (/^in$/i.test(operator) && /^\s*\(/.test(this.#rest));
    if (isComparison && isKnownName(name))
      throw fail(
        `${operator} is not an operator`,
        start,
        `; write ${name}:500..599, ${name}:a* or (${name}:a OR ${name}:b), or put the words in quotes`,
      );
  }

  /** `>=500` or `500..599`; undefined: the value is neither. */
  #readComparison(field: RecordField, value: string, start: number): Condition | undefined {
    const [, operator, bound = ''] = COMPARISON.exec(value) ?? [];
    if (operator !== undefined) {
      if (!NUMBER.test(bound))
        throw fail(
          `a number must follow ${operator}`,
          start + operator.length,
          '; to search for the text, put the value in quotes',
        );
      return { field, operator: operator as '<' | '<=' | '>' | '>=', number: bound };
    }
    const [, first = '', last = ''] = RANGE.exec(value) ?? [];
    const [from, to] = isStatus(field) ? [toCode(first, '00'), toCode(last, '99')] : [first, last];
    if (!NUMBER.test(from) && !NUMBER.test(to)) return undefined;
    if (!NUMBER.test(from) || !NUMBER.test(to))
      throw fail(
        'a range needs two numbers',
        start,
        `, such as 500..599${isStatus(field) ? ' or 4xx..5xx' : '; to search for the text, put the value in quotes'}`,
      );
    if (Number(from) > Number(to))
      throw fail('the first number of a range must not be larger than the second', start, '');
    return {
      all: [
        { field, operator: '>=', number: from },
        { field, operator: '<=', number: to },
      ],
    };
  }

  #readPattern(field: RecordField, value: string, start: number): Condition {
    if (/^(?:[!=~]|:(?!:))/.test(value))
      throw fail(
        `a value cannot begin with ${value.slice(0, 1)}`,
        start,
        '; write field:value, or -field:value for all others, or put the value in quotes',
      );
    if (
      'column' in field &&
      field.column === 'kind' &&
      !value.includes('*') &&
      !isLogKind(value.toLowerCase())
    )
      throw fail(`there is no log kind ${value}`, start, `; log kinds: ${LOG_KINDS.join(', ')}`);
    if (INTERVAL.test(value + this.#rest))
      throw fail(
        `a value cannot begin with ${value.slice(0, 1)}`,
        start,
        '; write a range of numbers as 500..599, or put the value in quotes',
      );
    const [separator] = /[|,]/.exec(value) ?? [];
    if (separator !== undefined && 'searchable' in field && LISTED_FIELDS.includes(field.searchable))
      throw fail(
        `a value of ${field.searchable} cannot contain ${separator}`,
        start + lengthBefore(separator, value),
        `; write (${field.searchable}:a OR ${field.searchable}:b), or put the value in quotes`,
      );
    const literals = value.split(/\*+/);
    if (literals.length - 1 > MAX_WILDCARDS)
      throw fail(`the value has more than ${MAX_WILDCARDS} wildcards (*)`, start, '');
    if ('column' in field && NUMBER_COLUMNS.includes(field.column)) {
      if (!NUMBER.test(value))
        throw fail(
          `the value of ${field.column} is not a number`,
          start,
          '; allowed: such as 100, >100, 100..200',
        );
      return { field, matches: [String(Number(value))] }; // as the stores write it: 1000, not 1e3
    }
    return { field, matches: literals };
  }

  /** A value without quotes. An asterisk matches any text. */
  #readValue(name: string): string {
    const start = this.#position;
    const value = this.#readPlain('value');
    if (value === '')
      throw fail(`${name}: has no value`, start, '; to search for text with a colon, put it in quotes');
    return value;
  }

  /** Up to the end of the term. */
  #readPlain(what: 'word' | 'value'): string {
    const start = this.#index;
    for (; !this.#isAtTermEnd(); this.#index++) {
      const character = this.#peek();
      if (character === '"' || character === '(')
        throw fail(
          `a ${character === '(' ? 'parenthesis' : 'quote'} is inside a ${what}`,
          this.#position,
          `; put the whole ${what === 'word' ? 'text' : what} in quotes`,
        );
    }
    return this.#characters.slice(start, this.#index).join('');
  }

  /** The name of a field; empty: there is none. */
  #readName(): string {
    const [name = ''] = NAME.exec(this.#rest) ?? [];
    this.#index += [...name].length;
    return name;
  }

  /** In quotes, \" is a quote and \\ is a backslash. */
  #readQuoted(what: 'phrase' | 'value'): string {
    const start = this.#position;
    this.#index++;
    let text = '';
    for (; !this.#isAtEnd; this.#index++) {
      const character = this.#peek();
      if (character === '"') break;
      const following = this.#characters[this.#index + 1];
      const isEscape = character === '\\' && (following === '"' || following === '\\');
      if (isEscape) this.#index++;
      text += isEscape ? following : character;
    }
    if (this.#isAtEnd) throw fail('the quote is not closed', start, '');
    this.#index++;
    if (text === '') throw fail(`the ${what} is empty`, start, '');
    this.#expectEnd('the closing quote');
    return text;
  }

  #expectEnd(what: string): void {
    if (this.#isAtTermEnd()) return;
    const advice = this.#peek() === ':' ? '; a key in quotes follows a dot, such as metadata."a/b":x' : '';
    throw fail(`a space must follow ${what}`, this.#position, advice);
  }

  get #rest(): string {
    return this.#characters.slice(this.#index).join('');
  }

  get #isAtEnd(): boolean {
    return this.#index >= this.#characters.length;
  }

  /** The position of the next character, from 1. */
  get #position(): number {
    return this.#index + 1;
  }

  #skipSpace(): void {
    while (!this.#isAtEnd && this.#isAtSpace()) this.#index++;
  }

  #peek(): string | undefined {
    return this.#characters[this.#index];
  }

  #isAtSpace(): boolean {
    return SPACE.test(this.#peek() ?? '');
  }

  #isAtTermEnd(): boolean {
    return this.#isAtEnd || this.#isAtSpace() || this.#peek() === ')';
  }

  #isAtWord(word: string): boolean {
    const end = this.#characters[this.#index + word.length];
    return (
      this.#characters.slice(this.#index, this.#index + word.length).join('') === word &&
      (end === undefined || end === '(' || end === ')' || SPACE.test(end))
    );
  }
}

/** Limits the cost of an expression (domain/limits.ts). */
class Limits {
  #words = 0;
  /** Values of a path are compared together, and every other condition on its own. */
  readonly #paths: string[] = [];
  readonly #wildcards = new Map<string, number>();

  /** Throws if the expression with this term exceeds a limit. */
  check(condition: Condition, isExcluded: boolean, position: number): void {
    if ('contains' in condition) {
      checkLength('the word or phrase', condition.contains, position);
      if (!isExcluded && ++this.#words > MAX_SEARCH_WORDS)
        throw new SearchSyntaxError(
          `too many words at character ${position}: at most ${MAX_SEARCH_WORDS} words and phrases are allowed; put words that follow each other into one "phrase"`,
        );
    }
    if ('matches' in condition) this.#checkWildcards(condition, isExcluded, position);
    for (const each of 'all' in condition ? condition.all : [condition]) this.#checkPaths(each, position);
  }

  #checkPaths(condition: Condition, position: number): void {
    if (!('field' in condition) || !('path' in condition.field)) return;
    const path = JSON.stringify(condition.field.path);
    if (!('matches' in condition && this.#paths.includes(path))) this.#paths.push(path);
    if (this.#paths.length > MAX_SEARCH_PATHS)
      throw new SearchSyntaxError(
        `too many fields of the metadata at character ${position}: at most ${MAX_SEARCH_PATHS} conditions on them are allowed`,
      );
  }

  #checkWildcards({ field, matches }: Match, isExcluded: boolean, position: number): void {
    if (matches.length === 1) return;
    checkLength('the value with a wildcard', matches.join(''), position);
    const name = `${isExcluded ? '-' : ''}${nameOf(field)}`;
    const count = (this.#wildcards.get(name) ?? 0) + matches.length - 1;
    this.#wildcards.set(name, count);
    if (count > MAX_FIELD_WILDCARDS)
      throw new SearchSyntaxError(
        `too many wildcards (*) at character ${position}: at most ${MAX_FIELD_WILDCARDS} are allowed in all values of ${name}; use values without a wildcard, or search in several steps`,
      );
  }
}

function checkLength(what: string, text: string, position: number): void {
  if ([...text].length <= MAX_TERM_CHARACTERS) return;
  throw new SearchSyntaxError(
    `${what} at character ${position} is too long: at most ${MAX_TERM_CHARACTERS} characters are allowed; search for a part of it`,
  );
}

function exclude(condition: Condition, isExcluded: boolean): Condition {
  return isExcluded ? { not: condition } : condition;
}

interface Term {
  readonly text: string;
  readonly start: number;
  /** A word without quotes and without a minus. */
  readonly isWord: boolean;
}

/** The start of an expression or a group. */
const EDGE: Term = { text: '', start: 0, isWord: true };

function isOperatorWord(text: string): boolean {
  return WRONG_OPERATORS.has(text.toUpperCase());
}

/** Throws if `term` is a lower-case operator next to anything but a word, such as `status:200 or status:500`. */
function checkNeighbours({ text, start }: Term, { isWord }: Term): void {
  if (!isWord && isOperatorWord(text) && text !== 'OR') throw notOperator(text, start);
}

function notOperator(word: string, start: number): SearchSyntaxError {
  const advice = WRONG_OPERATORS.get(word.toUpperCase()) ?? '';
  return fail(`${word} is not an operator`, start, `${advice}; to search for the word, write "${word}"`);
}

/** Throws if a word begins with a sign of other search languages, or with another dash than the minus. */
function checkSigns(word: string, start: number, quoted: string): void {
  const sign = word.slice(0, 1);
  if (OTHER_MINUS.test(word)) throw fail(`${sign} is not a minus`, start, `; write -term${quoted}`);
  if (/^\+[\p{L}_]/u.test(word))
    throw fail('+ is not an operator', start, `${WRONG_OPERATORS.get('AND')}${quoted}`);
}

function checkQuote(text: string, start: number): void {
  if (OTHER_QUOTE.test(text))
    throw fail(
      `${text.slice(0, 1)} is not a quote`,
      start,
      '; write "text", also to search for this character',
    );
}

/** Throws if the operator in a word was probably meant as the operator of a field. */
function checkOperator(name: string, operator: string, value: string, start: number, quoted: string): void {
  if (name === '' && operator.startsWith('::')) return; // an address
  if (name === '')
    throw fail(
      `${operator} needs a field before it and a value after it`,
      start,
      `, such as status:500 or status:>=500${quoted}`,
    );
  if (isKnownName(name) || (name.includes('.') && isName(name))) {
    const plain = operator.replace(/[:：]/g, '').replace('≥', '>=').replace('≤', '<=').replace('≠', '!=');
    const sign = plain.startsWith('!') || plain === '<>' ? '-' : '';
    const comparison = /^[<>]=?$/.test(plain) ? plain : '';
    throw fail(
      `${operator} cannot follow a field`,
      start + name.length,
      `; write ${sign}${name}:${comparison}${value === '' ? '…' : value}, or put the text in quotes`,
    );
  }
  if (!LIKE_NAME.test(name) || !FIELD_OPERATOR.test(operator + value)) return;
  const advice = isName(name)
    ? `${suggestFields(name, LOG_FIELDS)}. To search for this key of the metadata, write metadata.${name}:…`
    : 'a key with other characters than letters, digits, _ and - must be in quotes after a dot, such as metadata."a/b":x';
  throw fail(`there is no field ${name}`, start, `; ${advice}${quoted}`);
}

const COLUMNS: readonly string[] = SEARCH_COLUMNS;

function isName(text: string): boolean {
  return NAME.exec(text)?.[0] === text;
}

/** The name of a path in a search expression. A single key can have dots, as in OpenTelemetry. Undefined: it cannot be named. */
export function formatPath(path: readonly string[]): string | undefined {
  const [first = ''] = path;
  const parts = first.split('.');
  const keys = path.length === 1 && parts.every(part => PLAIN_KEY.test(part)) ? parts : path;
  if (keys.some(key => key === '' || key === '*')) return undefined;
  const name = keys.map(key => (PLAIN_KEY.test(key) ? key : `"${key.replace(/["\\]/g, '\\$&')}"`)).join('.');
  const isWhole = keys.length > 1 && keys[0] !== 'metadata' && isName(name);
  return isWhole ? name : `metadata.${name}`;
}

function isKnownName(name: string): boolean {
  const lower = name.toLowerCase();
  return lower === 'trace_id' || COLUMNS.includes(lower) || LOG_FIELDS.some(field => field === lower);
}

/**
 * A searchable field or a column in any case, or a path of keys in the metadata: two or more keys, or one after `metadata.`. Undefined
 * if the name is neither.
 */
function findField(name: string, fields: readonly LogField[]): RecordField | undefined {
  const lower = name.toLowerCase();
  const searchable = fields.find(field => field === lower);
  if (searchable !== undefined) return { searchable };
  const column = SEARCH_COLUMNS.find(each => each === lower);
  if (column !== undefined) return { column };
  if (lower === 'trace_id') return { path: ['trace_id'] };
  const keys = (name.match(KEYS) ?? []).map(unquote);
  if (keys.length === 1 || keys.length > MAX_PATH_KEYS) return undefined;
  return { path: keys[0] === 'metadata' ? keys.slice(1) : keys };
}

function unquote(key: string): string {
  return key.startsWith('"') ? key.slice(1, -1).replace(/\\(["\\])/g, '$1') : key;
}

function readFieldName(name: string, start: number, fields: readonly LogField[]): RecordField {
  const field = findField(name, fields);
  if (field !== undefined) return field;
  const isOfOtherKind = LOG_FIELDS.some(known => known === name.toLowerCase());
  throw fail(
    isOfOtherKind ? `the selected log kind has no field ${name}` : `there is no field ${name}`,
    start,
    `; ${suggestFields(name, fields)}. To search for this key of the metadata, write metadata.${name}. To search for text with a colon, put it in quotes`,
  );
}

/** "did you mean X", or all names. */
function suggestFields(name: string, fields: readonly LogField[]): string {
  const known = [...fields, ...COLUMNS, 'trace_id'];
  const closest = findClosest(name, known);
  return closest === undefined ? `allowed fields: ${known.join(', ')}` : `did you mean ${closest}`;
}

function nameOf(field: RecordField): string {
  if ('searchable' in field) return field.searchable;
  return 'column' in field ? field.column : (formatPath(field.path) ?? '');
}

function isStatus(field: RecordField): boolean {
  return 'searchable' in field && field.searchable === 'status';
}

/** The first or the last code of a class such as 5xx; any other text as it is. */
function toCode(text: string, digits: '00' | '99'): string {
  return text.replace(/^([1-5])xx$/i, (_, digit) => digit + digits);
}

/** A code such as 503, or a class such as 5xx: all codes that begin with 5. */
function readStatus(value: string, start: number): string[] {
  if (/^[1-5]\d\d$/.test(value)) return [value];
  if (/^[1-5]xx$/i.test(value)) return [value.slice(0, 1), ''];
  throw fail(
    'the value of status is not a status code',
    start,
    '; allowed: a code such as 503, a class such as 5xx, a comparison such as >=500, or a range such as 500..599',
  );
}

/** In characters. */
function lengthBefore(part: string, text: string): number {
  return [...text.slice(0, text.indexOf(part))].length;
}

function fail(problem: string, position: number, advice: string): SearchSyntaxError {
  return new SearchSyntaxError(`${problem} at character ${position}${advice}`);
}
