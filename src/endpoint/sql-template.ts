// Fills the placeholders in the SQL of an endpoint for one log kind, when the endpoint is loaded: {{logs}} is the kind's table,
// {{status}} and so on are its searchable fields (domain/log-fields.ts) as text, {{category}} is the level or, for a kind with a
// status, its class such as 5xx, {{search}} is the condition of a search parameter. No value of a request becomes SQL.
import type { LogKind } from '../domain/log-columns.ts';
import { columnsOf } from '../domain/log-columns.ts';
import {
  type FieldSource,
  fieldColumn,
  fieldSourceOf,
  fieldsOf,
  LOG_FIELDS,
  type LogField,
} from '../domain/log-fields.ts';
import type { StoreName } from '../store/store.ts';
import { searchValueNames } from './search-patterns.ts';

export interface SqlContext {
  readonly store: StoreName;
  readonly kind: LogKind;
  /** The name of the parameter of type search, if the endpoint has one. */
  readonly searchParameter: string | undefined;
}

/** SQL fragments of one store. The SQL of a log field returns text, or null if the record does not have the field. */
interface Dialect {
  /** A text parameter that may be null. */
  parameter(name: string): string;
  /** Whether a parameter is null. */
  isNull(parameter: string): string;
  /** Whether a text matches the expression of a parameter. Null if the text is null. */
  matches(text: string, parameter: string): string;
  /** The metadata as JSON text. */
  readonly metadata: string;
  /** Null, for a field that the log kind does not have. */
  readonly noField: string;
  /** A text; null if it is empty. */
  unlessEmpty(text: string): string;
  /** A path without its query string. */
  withoutQuery(path: string): string;
  /** A status code in an integer column; null unless it is from 100 to 599. */
  statusColumn(name: string): string;
  /** Such as 5xx; `other` if the status is null. */
  statusClass(status: string): string;
  /** `other` if the level is null or does not match LEVEL. */
  levelInLowerCase(level: string): string;
}

/** Only text of this form is a level. Other values are counted as `other`, so that the number of categories stays small. */
const LEVEL = '^[A-Za-z0-9_.-]{1,32}$';

const DUCKDB: Dialect = {
  parameter: name => `$${name}`,
  isNull: parameter => `${parameter} is null`,
  matches: (text, parameter) => `regexp_matches(${text}, ${parameter})`,
  metadata: 'metadata::varchar',
  noField: 'null::varchar',
  unlessEmpty: text => `nullif(${text}, '')`,
  withoutQuery: path => `split_part(${path}, '?', 1)`,
  statusColumn: name => `case when ${name} between 100 and 599 then ${name}::varchar end`,
  statusClass: status => `coalesce(left(${status}, 1) || 'xx', 'other')`,
  levelInLowerCase: level =>
    `case when regexp_matches(${level}, '${LEVEL}') then lower(${level}) else 'other' end`,
};

const CLICKHOUSE: Dialect = {
  parameter: name => `{${name}:Nullable(String)}`,
  isNull: parameter => `isNull(${parameter})`,
  matches: (text, parameter) => `match(${text}, ifNull(${parameter}, ''))`,
  metadata: 'metadata',
  noField: 'cast(null as Nullable(String))',
  unlessEmpty: text => `nullIf(${text}, '')`,
  withoutQuery: path => `splitByChar('?', ${path})[1]`,
  statusColumn: name => `if(${name} between 100 and 599, toString(${name}), null)`,
  statusClass: status => `ifNull(concat(substring(${status}, 1, 1), 'xx'), 'other')`,
  levelInLowerCase: level =>
    `if(ifNull(match(${level}, '${LEVEL}'), 0), lower(ifNull(${level}, '')), 'other')`,
};

const DIALECTS: Readonly<Record<StoreName, Dialect>> = { duckdb: DUCKDB, clickhouse: CLICKHOUSE };

const PLACEHOLDER = /\{\{\s*(\w+)\s*\}\}/g;

/** The names of the placeholders that the SQL uses. */
export function listPlaceholders(sql: string): string[] {
  return [...sql.matchAll(PLACEHOLDER)].map(([, name = '']) => name);
}

/** The placeholders that an endpoint can use. */
export function listKnownPlaceholders(hasSearch: boolean): string[] {
  return ['logs', ...LOG_FIELDS, 'category', ...(hasSearch ? ['search'] : [])];
}

/** The caller has checked that all placeholders are known. An unknown one would stay in the SQL. */
export function fillPlaceholders(sql: string, context: SqlContext): string {
  const values = createValues(context);
  return sql.replace(PLACEHOLDER, (text, name: string) => values.get(name)?.() ?? text);
}

function createValues({ store, kind, searchParameter }: SqlContext): Map<string, () => string> {
  const dialect = DIALECTS[store];
  const values = new Map<string, () => string>([['logs', () => `${kind}_logs`]]);
  for (const field of LOG_FIELDS) values.set(field, () => `(${fieldSql(dialect, kind, field)})`);
  values.set('category', () => `(${categorySql(dialect, kind)})`);
  if (searchParameter !== undefined)
    values.set('search', () => `(${searchSql(dialect, kind, searchParameter)})`);
  return values;
}

function fieldSql(dialect: Dialect, kind: LogKind, field: LogField): string {
  const source = fieldSourceOf(kind, field);
  if (source === undefined) return dialect.noField;
  if ('metadata' in source) return fieldColumn(field);
  // The only integer column of a searchable field is status_code.
  if (isInteger(kind, source)) return dialect.statusColumn(source.column);
  return dialect.unlessEmpty(field === 'path' ? dialect.withoutQuery(source.column) : source.column);
}

function isInteger(kind: LogKind, { column }: Extract<FieldSource, { column: string }>): boolean {
  return columnsOf(kind).find(({ name }) => name === column)?.type === 'integer';
}

/** The class of the status, such as 5xx. For a kind without a status: the level. `other` if the record has no valid value. */
function categorySql(dialect: Dialect, kind: LogKind): string {
  const fields = fieldsOf(kind);
  if (fields.includes('status')) return dialect.statusClass(fieldSql(dialect, kind, 'status'));
  return fields.includes('level')
    ? dialect.levelInLowerCase(`(${fieldSql(dialect, kind, 'level')})`)
    : "'other'";
}

/**
 * Two conditions for each field (included and excluded values), one for each word, and one for all excluded words. A null value
 * turns its condition off: both stores remove the condition when they plan the query, because they plan it with the bound values.
 */
function searchSql(dialect: Dialect, kind: LogKind, parameterName: string): string {
  const names = searchValueNames(parameterName);
  const occurs = (value: { message: string; metadata: string }) =>
    `${dialect.matches('event_message', dialect.parameter(value.message))} or ${dialect.matches(dialect.metadata, dialect.parameter(value.metadata))}`;
  const unlessNull = (name: string, condition: string) =>
    `(${dialect.isNull(dialect.parameter(name))} or ${condition})`;
  const hasValue = (field: LogField, name: string) =>
    `coalesce(${dialect.matches(`(${fieldSql(dialect, kind, field)})`, dialect.parameter(name))}, false)`;
  return [
    ...fieldsOf(kind).flatMap(field => {
      const { included, excluded } = names.field(field);
      return [
        unlessNull(included, hasValue(field, included)),
        unlessNull(excluded, `not ${hasValue(field, excluded)}`),
      ];
    }),
    ...names.words.map(word => unlessNull(word.message, occurs(word))),
    unlessNull(names.excludedWords.message, `not (${occurs(names.excludedWords)})`),
  ].join('\n    and ');
}
