// Splits a query in BigQuery's dialect into tokens, and writes them as a text that DuckDB's parser understands. The caller's literals
// are not in that text: each is replaced by its index. So a string in double quotes is no name, and no number is too large.
import { MAX_STUDIO_QUERY_LENGTH } from '../domain/limits.ts';
import { refuse } from './syntax-error.ts';

export type Literal = { readonly text: string } | { readonly number: string };

export interface LexedQuery {
  /** ASCII. A literal is written as a string with its index in `literals`. */
  readonly sql: string;
  readonly literals: readonly Literal[];
  /** The position after the last character. */
  readonly end: number;
  /** The position in the query of the token at this offset of `sql`; undefined: unknown. */
  positionAt(offset: number): number | undefined;
  /** The position of the first of these words, or of a later one. */
  findWord(words: RegExp, index?: number): number | undefined;
}

interface Token {
  readonly sql: string;
  /** Of its first character in the query. */
  readonly index: number;
}

const TOKENS = [
  '(?<space>\\s+|--[^\\n]*|#[^\\n]*|/\\*[^]*?\\*/)',
  '(?<open>/\\*)',
  '(?<raw>[rR](?=[\'"]))?(?<quote>[\'"])',
  '`(?<name>[^`]*)`',
  '(?<number>(?:\\d+(?:\\.\\d*)?|\\.\\d+)(?:[eE][-+]?\\d+)?)(?<tail>\\w*)',
  '(?<word>[A-Za-z_]\\w*)',
  '(?<symbol>::|<>|!=|<=|>=|\\|\\||[(),.*=<>;+/%-])',
];
const TOKEN = new RegExp(TOKENS.join('|'), 'uy');

/** The forms of a number that both stores read (store/log-sql.ts). */
const NUMBER = /^\d{1,40}(?:\.\d{1,40})?(?:e[-+]?\d{1,2})?$/i;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

export function lex(text: string): LexedQuery {
  const length = [...text].length;
  if (length > MAX_STUDIO_QUERY_LENGTH)
    throw refuse(
      `the query has ${length} characters; at most ${MAX_STUDIO_QUERY_LENGTH} are supported`,
      undefined,
    );
  const invalid = /[\0\uFFFD]/.exec(text);
  if (invalid !== null)
    throw refuse('the text is not valid UTF-8, or has a NUL character', toPosition(text, invalid.index));
  const literals: Literal[] = [];
  const tokens: Token[] = [];
  const add = (sql: string, index: number) => tokens.push({ sql, index });
  const addLiteral = (literal: Literal, index: number) => add(`'${literals.push(literal) - 1}'`, index);
  for (let index = 0; index < text.length; ) {
    TOKEN.lastIndex = index;
    const match = TOKEN.exec(text);
    const fail = (problem: string) => refuse(problem, toPosition(text, index));
    const { space, open, raw, quote, name, number, tail, word, symbol } = match?.groups ?? {};
    let end = TOKEN.lastIndex;
    if (quote !== undefined) {
      if (/^(as|from|join)$/i.test(tokens.at(-1)?.sql ?? ''))
        throw fail('a name in quotes is not supported; use backticks');
      const string = readString(text, end, quote, raw !== undefined);
      if (string === undefined) throw fail('the quote is not closed');
      addLiteral({ text: string.value }, index);
      end = string.end;
    } else if (name !== undefined) {
      const parts = name.split('.');
      if (!parts.every(part => /^[\w-]+$/.test(part)))
        throw fail('a name in backticks has letters, digits, _, - and dots; any other name is not supported');
      add(parts.map(part => `"${part}"`).join('.'), index);
    } else if (number !== undefined) {
      const digits = number.replace(/^\./, '0.').replace(/\.(?!\d)/, '');
      if (tail !== '' || !NUMBER.test(digits))
        throw fail('the number is too large, or has another form than 12.5e3');
      addLiteral({ number: digits }, index);
    } else if (word !== undefined) {
      add(translateWord(word, tokens.at(-1)?.sql, text.slice(end)), index);
    } else if (symbol !== undefined) add(symbol, index);
    else if (open !== undefined) throw fail('the comment is not closed');
    else if (space === undefined) {
      const character = String.fromCodePoint(text.codePointAt(index) ?? 0);
      throw fail(
        character === '`' ? 'the quote is not closed' : `the character ${character} is not supported`,
      );
    }
    index = end;
  }
  while (tokens.at(-1)?.sql === ';') tokens.pop();
  const second = tokens.find(({ sql }) => sql === ';');
  if (second !== undefined)
    throw refuse('several statements are not supported', toPosition(text, second.index));
  refuseExponential(text, tokens);
  const indexes = new Map<number, number>();
  let sql = '';
  for (const token of tokens) {
    indexes.set(sql.length, token.index);
    sql += `${token.sql} `;
  }
  const at = (index: number | undefined) => (index === undefined ? undefined : toPosition(text, index));
  return {
    sql,
    literals,
    end: length + 1,
    positionAt: offset =>
      at(offset < sql.length ? [...indexes].findLast(([start]) => start <= offset)?.[1] : undefined),
    findWord: (words, index = 0) => at(tokens.filter(token => words.test(token.sql))[index]?.index),
  };
}

/** Some short texts have trees that fill the memory of DuckDB's parser, and take it seconds. */
function refuseExponential(text: string, tokens: readonly Token[]): void {
  for (const [index, token] of tokens.entries()) {
    const [before = '', next = ''] = [tokens[index - 1]?.sql, tokens[index + 1]?.sql];
    const fail = (problem: string) => refuse(problem, toPosition(text, token.index));
    // It copies the value for each `when`, at every level.
    if (/^case$/i.test(token.sql) && !/^when$/i.test(next) && !/^(as|\.)$/i.test(before))
      throw fail('case with a value is not supported; use case when');
    // It lists all combinations.
    if (/^((cube|rollup) \(|grouping sets)$/i.test(`${token.sql} ${next}`))
      throw fail('grouping sets are not supported');
  }
}

/** DuckDB has no safe_cast, takes datetime for timestamp, and does not know timestamp as a function. */
function translateWord(word: string, previous: string | undefined, rest: string): string {
  const lower = word.toLowerCase();
  if (lower === 'safe_cast') return 'try_cast';
  if (lower === 'datetime' && (previous === '::' || (/^as$/i.test(previous ?? '') && /^\s*\)/.test(rest))))
    return '"datetime type"';
  return lower === 'timestamp' && /^\s*\(/.test(rest) ? `"${word}"` : word;
}

/** A quote can be doubled. A backslash escapes the characters that BigQuery needs it for; before any other one, it stays. */
function readString(
  text: string,
  start: number,
  quote: string,
  isRaw: boolean,
): { readonly value: string; readonly end: number } | undefined {
  let value = '';
  for (let index = start; index < text.length; index++) {
    const character = text[index] ?? '';
    const next = text[index + 1] ?? '';
    if (character === quote) {
      if (next !== quote) return { value, end: index + 1 };
      value += quote;
      index++;
    } else if (character === '\\' && !isRaw && /[\\'"`ntr]/.test(next)) {
      value += ESCAPES[next] ?? next;
      index++;
    } else value += character;
  }
  return undefined;
}

/** The position of a character for people, who count code points, from 1. */
function toPosition(text: string, index: number): number {
  return [...text.slice(0, index)].length + 1;
}
