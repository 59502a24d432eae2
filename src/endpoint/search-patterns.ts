// Converts the terms of a search expression to regular expressions (RE2 syntax), which are bound as values of the query. Both stores
// ignore case in the same way (Unicode's simple case folding), so they return the same records.
import { LOG_FIELDS } from '../domain/log-fields.ts';
import type { BoundValue } from '../store/store.ts';
import { MAX_SEARCH_WORDS, type SearchTerm } from './search-expression.ts';

/** The names of the SQL parameters of a search. A parameter is null if the expression has no such term. */
export interface SearchValueNames {
  /** For each of the 10 words, two names: of the pattern for the message, and of the pattern for the JSON text of the metadata. */
  readonly words: readonly { readonly message: string; readonly metadata: string }[];
  readonly excludedWords: { readonly message: string; readonly metadata: string };
  readonly field: (field: string) => { readonly included: string; readonly excluded: string };
}

export function searchValueNames(parameter: string): SearchValueNames {
  const pair = (name: string) => ({ message: name, metadata: `${name}_in_json` });
  return {
    words: Array.from({ length: MAX_SEARCH_WORDS }, (_, index) => pair(`${parameter}_word_${index + 1}`)),
    excludedWords: pair(`${parameter}_excluded_word`),
    field: field => ({ included: `${parameter}_${field}`, excluded: `${parameter}_excluded_${field}` }),
  };
}

/** All values of a search parameter, by name. */
export function bindSearchTerms(parameter: string, terms: readonly SearchTerm[]): Record<string, BoundValue> {
  const names = searchValueNames(parameter);
  const bound: Record<string, BoundValue> = {};
  const bind = (name: string, patterns: readonly string[], toExpression: (pattern: string) => string) => {
    bound[name] = { type: 'text', value: patterns.length === 0 ? null : toExpression(patterns.join('|')) };
  };
  const included = terms.filter(({ isExcluded }) => !isExcluded);
  const excluded = terms.filter(({ isExcluded }) => isExcluded);
  const words = listWords(included);
  for (const [index, { message, metadata }] of names.words.entries()) {
    bind(message, words.slice(index, index + 1).map(escapePattern), matchAnywhere);
    bind(metadata, words.slice(index, index + 1).map(toJsonPattern), matchAnywhere);
  }
  bind(names.excludedWords.message, listWords(excluded).map(escapePattern), matchAnywhere);
  bind(names.excludedWords.metadata, listWords(excluded).map(toJsonPattern), matchAnywhere);
  for (const field of LOG_FIELDS) {
    const values = names.field(field);
    bind(values.included, listValuePatterns(included, field), matchWhole);
    bind(values.excluded, listValuePatterns(excluded, field), matchWhole);
  }
  return bound;
}

function matchAnywhere(pattern: string): string {
  return `(?i)${pattern}`;
}

/** `s`: a wildcard also matches line breaks. */
function matchWhole(pattern: string): string {
  return `(?is)^(?:${pattern})$`;
}

/** A word or a phrase has no wildcards, so it has one literal. */
function listWords(terms: readonly SearchTerm[]): string[] {
  return terms.filter(({ field }) => field === undefined).map(({ literals }) => literals.join(''));
}

function listValuePatterns(terms: readonly SearchTerm[], field: string): string[] {
  return terms
    .filter(term => term.field === field)
    .map(({ literals }) =>
      field === 'status'
        ? literals.join('').replaceAll('x', '[0-9]') // a class such as 5xx
        : literals.map(escapePattern).join('.*'),
    );
}

export function escapePattern(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');
}

/**
 * The pattern of a text in JSON: each character as it is, or as an escape. JSON can escape any character, but ASCII letters,
 * digits and spaces are assumed to be written as they are.
 */
function toJsonPattern(text: string): string {
  return [...text]
    .map(character => (/[a-z0-9 ]/i.test(character) ? character : escapeAsJson(character)))
    .join('');
}

function escapeAsJson(character: string): string {
  const short = JSON.stringify(character).slice(1, -1);
  const forms = new Set([character, short, ...(character === '/' ? ['\\/'] : [])]);
  for (const variant of [character, character.toLowerCase(), character.toUpperCase()])
    if ([...variant].length === 1) forms.add(toUnicodeEscape(variant));
  return `(?:${[...forms].map(escapePattern).join('|')})`;
}

/** \u00e9, or two escapes (a surrogate pair) for a character outside the Basic Multilingual Plane. */
function toUnicodeEscape(character: string): string {
  return Array.from({ length: character.length }, (_, index) => character.charCodeAt(index))
    .map(unit => `\\u${unit.toString(16).padStart(4, '0')}`)
    .join('');
}
