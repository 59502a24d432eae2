// Fills the placeholders in the SQL of an endpoint for one log kind, when the endpoint is loaded: {{logs}} is the kind's table,
// {{status}} and so on are its searchable fields (domain/log-fields.ts) as text, {{category}} is the level or, for a kind with a
// status, its class such as 5xx, {{search}} is the condition of a search parameter. No value of a request becomes SQL.
import type { LogKind } from '../domain/log-columns.ts';
import { columnsOf } from '../domain/log-columns.ts';
import {
  type FieldSource,
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

/** The keys of objects and the indexes in arrays, from 0, that lead to a value. */
type JsonPath = readonly (string | number)[];

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
  /** A text column; null if the text is empty. */
  column(name: string): string;
  /** A status code in an integer column; null unless it is from 100 to 599. */
  statusColumn(name: string): string;
  /** A text or a whole number in the metadata. */
  metadataText(path: JsonPath): string;
  /** A status code in the metadata: a number or a text. */
  metadataStatus(path: JsonPath): string;
  /** The value if the field of the metadata is an array of one item, else null. */
  ifArrayOfOne(key: string, value: string): string;
  /** Such as 5xx; `other` if the status is null. */
  statusClass(status: string): string;
  /** `other` if the level is null or does not match LEVEL. */
  levelInLowerCase(level: string): string;
}

// A number such as 500.0 counts as the whole number 500, because some engines print it as 500.
const STATUS_JSON = '^"?([1-5][0-9][0-9])(?:[.]0)?"?$';
const WHOLE_NUMBER = '^(-?[0-9]{1,15})(?:[.]0)?$';
/** Only text of this form is a level. Other values are counted as `other`, so that the number of categories stays small. */
const LEVEL = '^[A-Za-z0-9_.-]{1,32}$';

const DUCKDB: Dialect = {
  parameter: name => `$${name}`,
  isNull: parameter => `${parameter} is null`,
  matches: (text, parameter) => `regexp_matches(${text}, ${parameter})`,
  metadata: 'metadata::varchar',
  noField: 'null::varchar',
  column: name => `nullif(${name}, '')`,
  statusColumn: name => `case when ${name} between 100 and 599 then ${name}::varchar end`,
  metadataText: keys => {
    const path = duckdbPathLiteral(keys);
    return `case when json_type(metadata, ${path}) = 'VARCHAR' then nullif(metadata ->> ${path}, '') else nullif(regexp_extract((metadata -> ${path})::varchar, '${WHOLE_NUMBER}', 1), '') end`;
  },
  metadataStatus: keys =>
    `nullif(regexp_extract((metadata -> ${duckdbPathLiteral(keys)})::varchar, '${STATUS_JSON}', 1), '')`,
  // Searching for text is much faster than parsing JSON, and most records have no such array.
  ifArrayOfOne: (key, value) =>
    `case when contains(metadata::varchar, '[') then case when contains(metadata::varchar, '"${key}"') then case when json_array_length(metadata, ${duckdbPathLiteral([key])}) = 1 then ${value} end end end`,
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
  column: name => `nullIf(${name}, '')`,
  statusColumn: name => `if(${name} between 100 and 599, toString(${name}), null)`,
  metadataText: keys => {
    const raw = clickhouseRawJson(keys);
    return `nullIf(if(startsWith(${raw}, '"'), JSONExtractString(${raw}), extract(${raw}, '${WHOLE_NUMBER}')), '')`;
  },
  metadataStatus: keys => `nullIf(extract(${clickhouseRawJson(keys)}, '${STATUS_JSON}'), '')`,
  // Checks the type, because JSONLength and an index also work on an object: they count and select its fields.
  ifArrayOfOne: (key, value) =>
    `if(position(metadata, '[') > 0 and position(metadata, '"${key}"') > 0 and JSONType(metadata, '${key}') = 'Array' and JSONLength(metadata, '${key}') = 1, ${value}, null)`,
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
  if ('metadata' in source) {
    const read = field === 'status' ? dialect.metadataStatus : dialect.metadataText;
    const keys = source.metadata;
    const [first = '', ...others] = keys;
    if (others.length === 0) return read(keys);
    // Some senders wrap every object in an array of one. OpenTelemetry has flat attributes such as request.method.
    const wrapped = dialect.ifArrayOfOne(first, read([first, 0, ...others]));
    return `coalesce(${read(keys)}, ${wrapped}, ${read([keys.join('.')])})`;
  }
  // The only integer column of a searchable field is status_code.
  return isInteger(kind, source) ? dialect.statusColumn(source.column) : dialect.column(source.column);
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

function duckdbPathLiteral(path: JsonPath): string {
  return `'$${path.map(step => (typeof step === 'number' ? `[${step}]` : `."${step}"`)).join('')}'`;
}

function clickhouseRawJson(path: JsonPath): string {
  const steps = path.map(step => (typeof step === 'number' ? step + 1 : `'${step}'`));
  return `JSONExtractRaw(metadata, ${steps.join(', ')})`;
}
