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
  /** The number of parentheses around the term. */
  readonly depth: number;
}

export function parseTerms(expression: string): PlacedTerm[] {
  return scan(expression).terms;
}

/** `hasOr`: there is an OR that is not in parentheses. */
function scan(expression: string): { terms: PlacedTerm[]; hasOr: boolean } {
  const terms: PlacedTerm[] = [];
  let depth = 0;
  let hasOr = false;
  // Anything up to a space or a parenthesis, where those in quotes do not count. A quote without an end reaches to the end.
  for (const { 0: text, index } of expression.matchAll(/[()]|(?:"(?:\\["\\]|[^"])*(?:"|$)|[^\s"()])+/g))
    if (text === '(') depth += 1;
    else if (text === ')') depth -= 1;
    else if (text === 'OR') hasOr ||= depth === 0;
    else if (text !== '-') terms.push({ ...parseTerm(text), start: index, end: index + text.length, depth });
  return { terms, hasOr };
}

/** A key after a dot can be in quotes. */
const FIELD = /^([a-z_][\w-]*(?:\.(?:[\w-]+|"(?:[^"\\]|\\["\\]|\\(?!["\\]))+"))*):(.*)$/is;

function parseTerm(text: string): Term {
  const isExcluded = text.startsWith('-') && text.length > 1;
  const rest = isExcluded ? text.slice(1) : text;
  const [, field, value = rest] = FIELD.exec(rest) ?? [];
  const isPath = field?.includes('.'); // a path of keys in the metadata; the case of other names does not matter
  return { field: isPath ? field : field?.toLowerCase(), value: unquote(value), isExcluded };
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
const NEEDS_NO_QUOTES = /^(?!(?:OR|AND|NOT)$|OR-|.*\.\.)[\p{L}\p{N}/._][\p{L}\p{N}/._@%+#-]*$/iu;

export function formatTerm({ field, value, isExcluded, isPattern = false }: Term): string {
  const quoted = isPattern || NEEDS_NO_QUOTES.test(value) ? value : `"${value.replace(/["\\]/g, '\\$&')}"`;
  return `${isExcluded ? '-' : ''}${field === undefined ? '' : `${field}:`}${quoted}`;
}

/**
 * Adds a term that records must match too. Removes the same term and its opposite, so that the expression has no duplicate and no
 * contradiction, but not within parentheses, where they are one of several alternatives.
 */
export function addTerm(expression: string, term: Term): string {
  const { terms, hasOr } = scan(expression);
  const removed = terms.filter(other => other.depth === 0 && isSameCondition(other, term));
  const others = hasOr ? `(${expression.trim()})` : removed.reduceRight(cut, expression);
  return `${others} ${formatTerm(term)}`.trim();
}

function cut(expression: string, { start, end }: PlacedTerm): string {
  return `${expression.slice(0, start).trimEnd()} ${expression.slice(end).trimStart()}`.trim();
}

function isSameCondition(a: Term, b: Term): boolean {
  return a.field === b.field && a.value.toLowerCase() === b.value.toLowerCase();
}

/** The same term in the expression; undefined if it has none, or only as one of several alternatives. */
export function findTerm(expression: string, term: Term): PlacedTerm | undefined {
  const { terms, hasOr } = scan(expression);
  const isSame = (other: PlacedTerm) =>
    other.depth === 0 && other.isExcluded === term.isExcluded && isSameCondition(other, term);
  return hasOr ? undefined : terms.find(isSame);
}

/** Adds the term, or removes it if the expression has it. */
export function toggleTerm(expression: string, term: Term): string {
  const found = findTerm(expression, term);
  return found === undefined ? addTerm(expression, term) : cut(expression, found);
}

/** Without the values of a field that it includes or excludes, for a list of all its values. */
export function withoutField(expression: string, field: string): string {
  const { terms, hasOr } = scan(expression);
  const values = terms.filter(term => term.depth === 0 && term.field === field);
  return hasOr ? expression : values.reduceRight(cut, expression);
}

/** Returns an empty expression if the term is one of several alternatives: the others say nothing about its values. */
export function removeTerm(expression: string, term: PlacedTerm): string {
  return term.depth > 0 || scan(expression).hasOr ? '' : cut(expression, term);
}

/** The server rejects longer phrases and patterns. */
const MAX_PHRASE_CHARACTERS = 128;
/** Leaves space for other terms: the server limits the whole expression. */
const MAX_VALUE_CHARACTERS = 500;

/**
 * The term that finds a value of a record: by its field, if there is one. A value that is too long is found by its beginning, or by a
 * phrase if the field is a path. A value of several lines is found by a phrase: the search box has one line. The field `path` has no
 * query string.
 */
export function toTerm(name: string | undefined, text: string, isExcluded: boolean): Term {
  const isPhrase =
    /[\r\n]/.test(text) || (name?.includes('.') === true && text.length > MAX_VALUE_CHARACTERS);
  const field = isPhrase ? undefined : name;
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
