// The SQL of log records in both stores: the tables of the log kinds, and the values of their fields. `all` is a table of all log
// kinds with the columns that they have in common, and with the fields as columns.
import { columnsOf, LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { fieldColumn, fieldSourceOf, fieldsOf, LOG_FIELDS, type LogField } from '../domain/log-fields.ts';
import { NUMBER_COLUMNS, type RecordField, SEARCH_COLUMNS, type SearchColumn } from './condition.ts';
import type { StoreName } from './store.ts';

export type KindOrAll = LogKind | 'all';

/** SQL fragments of one store. */
export interface Dialect {
  /** A text parameter. */
  parameter(name: string): string;
  /** Whether a text matches a regular expression. Null if the text is null. */
  matches(text: string, pattern: string): string;
  /** The condition, or false if it is null. */
  isTrue(condition: string): string;
  /** The metadata as JSON text. */
  readonly metadata: string;
  /** Message and metadata in one text, in lower case, if the store has an index of it. The Kelvin sign and the long s are k and s. */
  readonly indexedText?: string;
  /** A null text. */
  readonly noText: string;
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
  /** The JSON of the value at a path in the metadata; null if there is none. `quote` writes a text as SQL. */
  json(keys: readonly string[], quote: (text: string) => string): string;
  /** The text of a JSON string, number or boolean; null for any other JSON. */
  scalar(json: string): string;
  /** The same JSON on both stores; null for the JSON null. */
  jsonValue(json: string): string;
  /** Whether JSON is an object, or an array with one object. Null if the JSON is null. */
  isObject(json: string): string;
  /** The number in a text or in JSON; null if it has none. */
  toNumber(text: string): string;
  /** The text of a number, without a fraction of zero. */
  toText(number: string): string;
  /** The text, with * in place of what the pattern matches. */
  mask(text: string, pattern: string): string;
  /** A text that is longer than this is cut, and not in the middle of an IP address. */
  cut(text: string, maxCharacters: number): string;
}

/** Only text of this form is a level. Other values are counted as `other`, so that the number of categories stays small. */
const LEVEL = '^[A-Za-z0-9_.-]{1,32}$';
/** `error`, and the levels that are more severe, as Postgres and other senders name them. */
const ERROR_LEVELS = ['error', 'fatal', 'panic', 'critical', 'alert', 'emergency'];
/** A number, also as a JSON string. */
const NUMBER = '^"?(-?[0-9]{1,40}(?:[.][0-9]{1,40})?(?:[eE][-+]?[0-9]{1,2})?)"?$';
/** What a text that is cut may end with: a part of an IP address, which redaction would not recognize. */
const PART_OF_ADDRESS = '[0-9A-Fa-f.:%]+$';

/**
 * The places of a value whose path has several keys: in objects; in objects that each are the only item of an array, as some senders
 * write them; and in one flat key such as `request.method`, as OpenTelemetry has it.
 */
const DUCKDB: Dialect = {
  parameter: name => `$${name}`,
  matches: (text, pattern) => `regexp_matches(${text}, ${pattern})`,
  isTrue: condition => `coalesce(${condition}, false)`,
  metadata: 'metadata::varchar',
  noText: 'null::varchar',
  unlessEmpty: text => `nullif(${text}, '')`,
  withoutQuery: path => `split_part(${path}, '?', 1)`,
  statusColumn: name => `case when ${name} between 100 and 599 then ${name}::varchar end`,
  statusClass: status => `coalesce(left(${status}, 1) || 'xx', 'other')`,
  levelInLowerCase: level =>
    `case when regexp_matches(${level}, '${LEVEL}') then lower(${level}) else 'other' end`,
  json(keys, quote) {
    const at = (...steps: (string | number)[]) =>
      `json_extract(metadata, ${quote(`$${steps.map(step => (typeof step === 'number' ? `[${step}]` : `."${step.replace(/["\\]/g, '\\$&')}"`)).join('')}`)})`;
    if (keys.length === 1) return `${at(...keys)}::varchar`;
    const objects = keys.slice(0, -1).map((_, index) => keys.slice(0, index + 1).flatMap(key => [key, 0]));
    const areSingle = objects.map(steps => `${at(...steps.slice(0, -1), 1)} is null`);
    const wrapped = at(...(objects.at(-1) ?? []), keys.at(-1) ?? '');
    return `coalesce(${at(...keys)}, case when ${areSingle.join(' and ')} then ${wrapped} end, ${at(keys.join('.'))})::varchar`;
  },
  scalar: json =>
    `list_transform([${json}], lambda value: case when starts_with(value, '"') then value ->> '$' when regexp_matches(value, '^[-0-9tf]') then regexp_replace(value, '[.]0+$', '') end)[1]`,
  jsonValue: json =>
    `list_transform([${json}], lambda value: case when regexp_matches(value, '^[-0-9]') then regexp_replace(value, '[.]0+$', '') else nullif(value, 'null') end)[1]`,
  isObject: json =>
    `list_transform([${json}], lambda value: starts_with(value, '{') or (starts_with(value, '[{') and json_array_length(value) = 1))[1]`,
  toNumber: text => `try_cast(regexp_extract(${text}, '${NUMBER}', 1) as double)`,
  toText: number => `regexp_replace(${number}::varchar, '[.]0+$', '')`,
  mask: (text, pattern) => `regexp_replace(${text}, ${pattern}, '*', 'g')`,
  cut: (text, maxCharacters) =>
    `case when length(${text}) > ${maxCharacters} then regexp_replace(left(${text}, ${maxCharacters}), '${PART_OF_ADDRESS}', '') else ${text} end`,
};

/** Larger metadata is parsed one record at a time by `parseLargeMetadataAlone`. */
const LARGE_METADATA_BYTES = 16 * 1024;

/**
 * SQL for DuckDB that reads the same values with less memory: json_extract parses the metadata of 2,048 records before it frees the
 * memory, which is 18 times the size of dense JSON. json_each parses one record at a time, and is slower.
 */
export function parseLargeMetadataAlone(sql: string): string {
  return sql.replace(/json_extract\(metadata, (\$\w+|'[^']*')\)/g, (small, path) => {
    const isSmall = `strlen(metadata) <= ${LARGE_METADATA_BYTES}`;
    const large = `(select first(case when key is null then value else '{}' end) from json_each(case when not (${isSmall}) then metadata end, ${path}))`;
    return `coalesce(case when ${isSmall} then ${small} end, ${large})`;
  });
}

/** ClickHouse has an index of exactly this expression (clickhouse/schema.ts). */
export const INDEXED_TEXT = `lower(replaceAll(replaceAll(concat(event_message, ' ', metadata), '\u212a', 'k'), 'ſ', 's'))`;

const CLICKHOUSE: Dialect = {
  parameter: name => `{${name}:String}`,
  matches: (text, pattern) => `match(${text}, ${pattern})`,
  isTrue: condition => `ifNull(${condition}, 0)`,
  metadata: 'metadata',
  indexedText: INDEXED_TEXT,
  noText: 'cast(null as Nullable(String))',
  unlessEmpty: text => `nullIf(${text}, '')`,
  withoutQuery: path => `splitByChar('?', ${path})[1]`,
  statusColumn: name => `if(${name} between 100 and 599, toString(${name}), null)`,
  statusClass: status => `ifNull(concat(substring(${status}, 1, 1), 'xx'), 'other')`,
  levelInLowerCase: level =>
    `if(ifNull(match(${level}, '${LEVEL}'), 0), lower(ifNull(${level}, '')), 'other')`,
  json(keys, quote) {
    const call = (name: string, steps: readonly (string | number)[]) =>
      `${name}(metadata, ${steps.map(step => (typeof step === 'number' ? step : quote(step))).join(', ')})`;
    const at = (...steps: (string | number)[]) => `nullIf(${call('JSONExtractRaw', steps)}, '')`;
    if (keys.length === 1) return at(...keys);
    // Checks the types, because JSONLength and an index also work on an object: they count and select its fields.
    const objects = keys.slice(0, -1).map((_, index) => keys.slice(0, index + 1).flatMap(key => [key, 1]));
    const areSingle = objects.map(steps => {
      const array = steps.slice(0, -1);
      return `${call('JSONType', array)} = 'Array' and ${call('JSONLength', array)} = 1`;
    });
    const wrapped = at(...(objects.at(-1) ?? []), keys.at(-1) ?? '');
    return `coalesce(${at(...keys)}, if(${areSingle.join(' and ')}, ${wrapped}, null), ${at(keys.join('.'))})`;
  },
  scalar: json =>
    `multiIf(startsWith(ifNull(${json}, ''), '"'), JSONExtractString(ifNull(${json}, '')), match(ifNull(${json}, ''), '^[-0-9tf]'), replaceRegexpOne(ifNull(${json}, ''), '[.]0+$', ''), null)`,
  jsonValue: json =>
    `if(match(ifNull(${json}, ''), '^[-0-9]'), replaceRegexpOne(ifNull(${json}, ''), '[.]0+$', ''), nullIf(${json}, 'null'))`,
  isObject: json =>
    `(startsWith(${json}, '{') or (startsWith(${json}, '[{') and JSONLength(ifNull(${json}, '')) = 1))`,
  toNumber: text => `toFloat64OrNull(extract(ifNull(${text}, ''), '${NUMBER}'))`,
  toText: number => `replaceRegexpOne(toString(${number}), '[.]0+$', '')`,
  mask: (text, pattern) => `replaceRegexpAll(${text}, ${pattern}, '*')`,
  cut: (text, maxCharacters) =>
    `if(lengthUTF8(${text}) > ${maxCharacters}, replaceRegexpOne(leftUTF8(${text}, ${maxCharacters}), '${PART_OF_ADDRESS}', ''), ${text})`,
};

const DIALECTS: Readonly<Record<StoreName, Dialect>> = { duckdb: DUCKDB, clickhouse: CLICKHOUSE };

/** The value of a field as SQL: a text or a number, or JSON. Null if the record does not have it. */
export type ValueSql = { readonly text: string } | { readonly number: string } | { readonly json: string };

export class LogSql {
  readonly dialect: Dialect;
  readonly #kind: KindOrAll;

  constructor(store: StoreName, kind: KindOrAll) {
    this.dialect = DIALECTS[store];
    this.#kind = kind;
  }

  /** The table of the kind. */
  get table(): string {
    if (this.#kind !== 'all') return `${this.#kind}_logs`;
    return `(${LOG_KINDS.map(kind => selectCommonColumns(this.dialect, kind)).join(' union all ')})`;
  }

  /** The name of the kind as SQL. */
  get kind(): string {
    return this.#kind === 'all' ? 'kind' : `'${this.#kind}'`;
  }

  /** The class of the status, such as 5xx. For a kind without a status: the level. `other` if the record has no valid value. */
  get category(): string {
    return this.#kind === 'all' ? this.kind : categoryOf(this.dialect, this.#kind);
  }

  /** Whether the record is an error: by its status or its level. */
  get isError(): string {
    const level = `lower(${this.field('level')}) in (${ERROR_LEVELS.map(each => `'${each}'`).join(', ')})`;
    return `${this.dialect.isTrue(`${this.field('status')} >= '500'`)} or ${this.dialect.isTrue(level)}`;
  }

  field(field: LogField): string {
    return this.#kind === 'all' ? fieldColumn(field) : fieldOf(this.dialect, this.#kind, field);
  }

  /** `quote` writes a key of the metadata as SQL, such as a bound parameter. */
  value(field: RecordField, quote: (text: string) => string): ValueSql {
    if ('searchable' in field) return { text: this.field(field.searchable) };
    if ('path' in field) return { json: this.dialect.json(field.path, quote) };
    const { column } = field;
    if (column === 'kind') return { text: this.kind };
    if (this.#kind !== 'all' && !hasColumn(this.#kind, column))
      return { json: this.dialect.json([column], quote) };
    return NUMBER_COLUMNS.includes(column) ? { number: column } : { text: column };
  }
}

/** The columns of the table of all kinds, which all kinds select in the same order. */
function selectCommonColumns(dialect: Dialect, kind: LogKind): string {
  const common = ['id', 'timestamp', 'project', 'event_message', 'metadata'];
  const fields = LOG_FIELDS.map(field => `${fieldOf(dialect, kind, field)} as ${fieldColumn(field)}`);
  const extracted = SEARCH_COLUMNS.filter(name => name !== 'kind' && !common.includes(name));
  const columns = extracted.map(name => `${extractedColumn(dialect, kind, name)} as ${name}`);
  return `select '${kind}' as kind, ${[...common, ...fields, ...columns].join(', ')} from ${kind}_logs`;
}

function extractedColumn(dialect: Dialect, kind: LogKind, column: SearchColumn): string {
  const isNumber = NUMBER_COLUMNS.includes(column);
  if (hasColumn(kind, column)) return isNumber ? `${column} * 1.0` : column;
  const json = dialect.json([column], text => `'${text}'`);
  return isNumber ? dialect.toNumber(json) : dialect.unlessEmpty(dialect.scalar(json));
}

function hasColumn(kind: LogKind, column: string): boolean {
  return columnsOf(kind).some(({ name }) => name === column);
}

function fieldOf(dialect: Dialect, kind: LogKind, field: LogField): string {
  const source = fieldSourceOf(kind, field);
  if (source === undefined) return dialect.noText;
  if ('metadata' in source) return fieldColumn(field);
  // The only number column of a searchable field is status_code.
  if (NUMBER_COLUMNS.includes(source.column)) return dialect.statusColumn(source.column);
  return dialect.unlessEmpty(field === 'path' ? dialect.withoutQuery(source.column) : source.column);
}

function categoryOf(dialect: Dialect, kind: LogKind): string {
  const fields = fieldsOf(kind);
  if (fields.includes('status')) return dialect.statusClass(fieldOf(dialect, kind, 'status'));
  return fields.includes('level')
    ? dialect.levelInLowerCase(`(${fieldOf(dialect, kind, 'level')})`)
    : "'other'";
}
