// Compiles a condition to SQL. The SQL depends on the shape of the condition only: every text of it is a bound value. Texts become
// regular expressions (RE2 syntax), because both stores ignore case in the same way in them (Unicode's simple case folding).
import type { Condition, RecordField } from './condition.ts';
import type { LogSql, ValueSql } from './log-sql.ts';
import { runsOf } from './required-text.ts';
import type { BoundValue } from './store.ts';

/** No parameter of an endpoint begins with an underscore. */
const PREFIX = '_search_';

/**
 * What a pattern of a message masks: quoted texts (an apostrophe inside a word is no quote), UUIDs, IPv6 addresses, hexadecimal and
 * other long ids, and numbers with what they are joined to, such as 10.0.0.1:80. A number of one or two digits in a word stays: v1.
 */
const MASKED = [
  '[0-9]+(?:[.][0-9]+){3,}(?::[0-9]+)?',
  '"[^"]*"',
  "\\B'[^']*'",
  '[[:xdigit:]]{8}-[[:xdigit:]]{4}-[[:xdigit:]]{4}-[[:xdigit:]]{4}-[[:xdigit:]]{12}',
  '[[:xdigit:]]{1,4}(?:::?[[:xdigit:]]{1,4}){2,7}',
  '\\b[[:xdigit:]]{8,}\\b',
  '[[:alnum:]]{20,}',
  '\\b[0-9]+(?:[.,:][0-9]+)*',
  '[0-9]{3,}',
].join('|');

/** Longer values are cut: they would take much memory, and nobody reads them. */
const MAX_VALUE_CHARACTERS = 1000;
const MAX_PATTERN_CHARACTERS = 500;

/** Of the parts of a text that an index knows. Each costs time, and the longest ones exclude the most records. */
const MAX_INDEXED_RUNS = 3;

type Match = Extract<Condition, { matches: unknown }>;

/** Compiles the conditions, fields and patterns of one query. */
export class ConditionCompiler {
  /** The values of all parameters so far. */
  readonly values: Record<string, BoundValue> = {};
  readonly #logs: LogSql;
  readonly #names = new Map<string, string>();

  constructor(logs: LogSql) {
    this.#logs = logs;
  }

  compile(condition: Condition): string {
    if ('all' in condition) return this.#all(condition.all);
    if ('any' in condition) return this.#any(condition.any);
    if ('not' in condition) return `not ${this.#any([condition.not])}`;
    if ('contains' in condition) return this.#containsOne(condition.contains);
    if ('matches' in condition) return this.#matches([condition]);
    if ('exists' in condition) return this.#exists(condition.field);
    const { dialect } = this.#logs;
    const number = dialect.toNumber(this.#bind(condition.number));
    return dialect.isTrue(`${this.#number(condition.field)} ${condition.operator} ${number}`);
  }

  /** The value of a field as text. Null if the record does not have it. */
  fieldText(field: RecordField): string {
    const { dialect } = this.#logs;
    const value = this.#value(field);
    if ('number' in value) return dialect.toText(value.number);
    if ('json' in value) return dialect.unlessEmpty(dialect.scalar(value.json));
    // The only column that can be long
    const isMessage = 'column' in field && field.column === 'event_message';
    return dialect.unlessEmpty(isMessage ? this.messageSample() : value.text);
  }

  messageSample(): string {
    return this.#logs.dialect.cut('event_message', MAX_VALUE_CHARACTERS);
  }

  /** The message with * in place of numbers, ids, addresses and quoted texts. */
  messagePattern(): string {
    const { dialect } = this.#logs;
    return dialect.mask(dialect.cut('event_message', MAX_PATTERN_CHARACTERS), this.#bind(MASKED));
  }

  /** All excluded terms together are one condition, so that excluded words are one regular expression. */
  #all(conditions: readonly Condition[]): string {
    const excluded = conditions.flatMap(condition => ('not' in condition ? [condition.not] : []));
    const parts = conditions.filter(condition => !('not' in condition)).map(each => this.compile(each));
    if (excluded.length > 0) parts.push(`not ${this.#any(excluded)}`);
    return parts.length === 0 ? '1 = 1' : `(${parts.join(' and ')})`;
  }

  /** All texts are one regular expression, and so are all values of a field. */
  #any(conditions: readonly Condition[]): string {
    const texts = conditions.flatMap(condition => ('contains' in condition ? [condition.contains] : []));
    const matches = new Map<string, Match[]>();
    for (const condition of conditions)
      if ('matches' in condition) {
        const field = JSON.stringify(condition.field);
        matches.set(field, [...(matches.get(field) ?? []), condition]);
      }
    const parts = conditions
      .filter(condition => !('contains' in condition) && !('matches' in condition))
      .map(each => this.compile(each));
    if (texts.length > 0) parts.push(this.#contains(texts));
    parts.push(...[...matches.values()].map(each => this.#matches(each)));
    return `(${parts.join(' or ')})`;
  }

  #contains(texts: readonly string[]): string {
    const { dialect } = this.#logs;
    const inMessage = this.#bind(`(?i)${texts.map(escapePattern).join('|')}`);
    const inMetadata = this.#bind(`(?i)${texts.map(toJsonPattern).join('|')}`);
    return `(${dialect.matches('event_message', inMessage)} or ${dialect.matches(dialect.metadata, inMetadata)})`;
  }

  /** With conditions for which the store has an index. A record that contains the text satisfies them, too. */
  #containsOne(text: string): string {
    const { indexedText } = this.#logs.dialect;
    const longest = [...new Set(runsOf(text))].sort((one, other) => other.length - one.length);
    const runs = indexedText === undefined ? [] : longest.slice(0, MAX_INDEXED_RUNS);
    const conditions = runs.map(run => `${indexedText} like ${this.#bind(`%${run}%`)}`);
    return `(${[...conditions, this.#contains([text])].join(' and ')})`;
  }

  /** Conditions on the same field. `s`: a wildcard also matches line breaks. */
  #matches(conditions: readonly Match[]): string {
    const [{ field }] = conditions as [Match];
    const { dialect } = this.#logs;
    const value = this.#value(field);
    const patterns = conditions.map(({ matches }) =>
      'text' in value ? joinLiterals(matches, escapePattern) : toJsonValuePattern(matches),
    );
    const text = 'json' in value ? value.json : 'text' in value ? value.text : dialect.toText(value.number);
    return dialect.isTrue(dialect.matches(`(${text})`, this.#bind(`(?is)^(?:${patterns.join('|')})$`)));
  }

  #exists(field: RecordField): string {
    const value = this.#value(field);
    if ('number' in value) return `${value.number} is not null`;
    const text = 'text' in value ? value.text : value.json;
    const empty = 'text' in value ? `('')` : `('null', '""')`;
    return this.#logs.dialect.isTrue(`(${text}) not in ${empty}`);
  }

  #number(field: RecordField): string {
    const value = this.#value(field);
    if ('number' in value) return value.number;
    return this.#logs.dialect.toNumber('text' in value ? value.text : value.json);
  }

  #value(field: RecordField): ValueSql {
    return this.#logs.value(field, text => this.#bind(text));
  }

  /** The parameter of a value. A value that occurs twice has one parameter. */
  #bind(value: string): string {
    let name = this.#names.get(value);
    if (name === undefined) {
      name = `${PREFIX}${this.#names.size + 1}`;
      this.#names.set(value, name);
      this.values[name] = { type: 'text', value };
    }
    return this.#logs.dialect.parameter(name);
  }
}

/** With wildcards between the literals. Wildcards alone do not match the empty text: it is no value. */
function joinLiterals(literals: readonly string[], toPattern: (literal: string) => string): string {
  return literals.every(literal => literal === '') ? '.+' : literals.map(toPattern).join('.*');
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

/** The pattern of a value as JSON: a string, or also a number or a boolean. The stores write a number such as 12.50 as 12.5. */
function toJsonValuePattern(literals: readonly string[]): string {
  const patterns = [`"${joinLiterals(literals, toJsonPattern)}"`];
  const [text = ''] = literals;
  if (literals.length > 1) {
    if (literals.every(literal => /^[-+.0-9]*$/.test(literal)))
      patterns.push(literals.map(escapePattern).join('[-+.0-9eE]*'));
    const glob = new RegExp(`^${literals.map(escapePattern).join('.*')}$`, 'i');
    patterns.push(...['true', 'false'].filter(boolean => glob.test(boolean)));
  } else if (/^(?:true|false)$/i.test(text)) patterns.push(text);
  else if (DECIMAL.test(text)) patterns.push(toNumberPattern(text));
  else if (/^-?[\d.]+e\d+$/i.test(text) && DECIMAL.test(String(Number(text))))
    patterns.push(toNumberPattern(String(Number(text))));
  return patterns.join('|');
}

const DECIMAL = /^-?\d+(?:\.\d+)?$/;

/** 500 is also 500.0, and 12.50 is also 12.5. */
function toNumberPattern(text: string): string {
  const [whole = '', fraction = ''] = text.split('.');
  const digits = fraction.replace(/0+$/, '');
  const number = whole.replace(/^(-?)0+(?=\d)/, '$1');
  return digits === '' ? `${number}(?:[.]0+)?` : `${number}[.]${digits}0*`;
}
