// Reads and edits the search expression of logs.search on the client: the terms and their positions, for suggestions and for
// filters that the user adds with a click. The server alone decides whether an expression is valid.

/** One condition of a search expression: a word, a phrase, or the value of a field. */
export interface Term {
  readonly field: string | undefined;
  readonly value: string;
  readonly isExcluded: boolean;
  /** An asterisk in the value matches any text. */
  readonly isPattern?: boolean;
}

export interface PlacedTerm extends Term {
  /** The characters of the expression that the term occupies; `end` is exclusive. */
  readonly start: number;
  readonly end: number;
}

export function parseTerms(expression: string): PlacedTerm[] {
  // Anything up to a space, where a space in quotes does not count. A quote without an end reaches to the end of the text.
  const pieces = expression.matchAll(/(?:"(?:\\["\\]|[^"])*(?:"|$)|[^\s"])+/g);
  return [...pieces].map(({ 0: text, index }) => ({
    ...parseTerm(text),
    start: index,
    end: index + text.length,
  }));
}

function parseTerm(text: string): Term {
  const isExcluded = text.startsWith('-') && text.length > 1;
  const rest = isExcluded ? text.slice(1) : text;
  const [, field, value = rest] = /^([a-z_]+):(.*)$/is.exec(rest) ?? [];
  return { field: field?.toLowerCase(), value: unquote(value), isExcluded };
}

/** Removes the quotes. A backslash stands before a quote or a backslash that belongs to the text. */
function unquote(text: string): string {
  const [, quoted] = /^"((?:\\["\\]|[^"])*)"?$/.exec(text) ?? [];
  return quoted === undefined ? text : quoted.replace(/\\(["\\])/g, '$1');
}

/** The term that the user is typing: the one that contains the caret or ends at it. */
export function findTermAt(expression: string, caret: number): PlacedTerm | undefined {
  return parseTerms(expression).find(({ start, end }) => start < caret && caret <= end);
}

/** Matches a value that needs no quotes. Other characters, without quotes, could end the value or change its meaning. */
const NEEDS_NO_QUOTES = /^[\p{L}\p{N}/._][\p{L}\p{N}/._@%+~#=-]*$/u;

export function formatTerm({ field, value, isExcluded, isPattern = false }: Term): string {
  const quoted = isPattern || NEEDS_NO_QUOTES.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`;
  return `${isExcluded ? '-' : ''}${field === undefined ? '' : `${field}:`}${quoted}`;
}

/** Adds a term. Removes the same term and its opposite, so that the expression has no duplicate and no contradiction. */
export function addTerm(expression: string, term: Term): string {
  const others = parseTerms(expression).filter(other => !isSameCondition(other, term));
  return `${joinTerms(expression, others)} ${formatTerm(term)}`.trim();
}

/** The terms as they are written in the expression. */
function joinTerms(expression: string, terms: readonly PlacedTerm[]): string {
  return terms.map(({ start, end }) => expression.slice(start, end)).join(' ');
}

function isSameCondition(a: Term, b: Term): boolean {
  return a.field === b.field && a.value.toLowerCase() === b.value.toLowerCase();
}

export function removeTerm(expression: string, term: PlacedTerm): string {
  return joinTerms(
    expression,
    parseTerms(expression).filter(({ start }) => start !== term.start),
  );
}

/** The server rejects longer phrases and patterns. */
const MAX_PHRASE_CHARACTERS = 128;
/** Leaves space for other terms: the server limits the whole expression. */
const MAX_VALUE_CHARACTERS = 500;

/**
 * The term that finds a value of a record: by its field, if there is one. A value that is too long is found by its beginning. The
 * field `path` has no query string.
 */
export function toTerm(field: string | undefined, text: string, isExcluded: boolean): Term {
  const value = field === 'path' ? text.replace(/\?.*/s, '') : text;
  if (field !== undefined && value !== '' && value.length <= MAX_VALUE_CHARACTERS)
    return { field, value, isExcluded };
  const [prefix = ''] = /^[\p{L}\p{N}/._][\p{L}\p{N}/._@%+~#=-]*/u.exec(value) ?? [];
  if (field === undefined || prefix === '') return { field: undefined, value: toPhrase(text), isExcluded };
  const start = [...prefix].slice(0, MAX_PHRASE_CHARACTERS).join('');
  return { field, value: `${start}*`, isExcluded, isPattern: true };
}

/** The part of a value that a phrase can find: its longest line, because a text field has no line breaks. */
export function toPhrase(value: string): string {
  const longest = value
    .split(/[\r\n]+/)
    .reduce((best, line) => (line.length > best.length ? line : best), '');
  return [...longest.trim()].slice(0, MAX_PHRASE_CHARACTERS).join('').trim();
}
