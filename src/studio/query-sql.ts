// Compiles a checked query to SQL of the store in use. All values are bound. A subquery has one row for each record, with everything
// that depends on the record; the outer query aggregates, orders and limits these rows.
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { type MetadataField, metadataFieldsOf } from '../domain/log-fields.ts';
import { isPlainText } from '../endpoint/pattern-cost.ts';
import { type Dialect, LogSql } from '../store/log-sql.ts';
import { type RequiredText, requireTexts } from '../store/required-text.ts';
import type { BoundValue, BoundValues, Column, StoreName } from '../store/store.ts';
import { operationsOf, STUDIO_DIALECTS } from './operations.ts';
import { isAggregate, keyOf, type Path, type Query, type Type, type Value } from './query.ts';

export interface CompiledQuery {
  readonly sql: string;
  readonly values: BoundValues;
  /** As the store returns them. */
  readonly columns: readonly Column[];
  /** A record that does not contain this cannot be in the result. */
  readonly requiredText: RequiredText;
}

const COLUMN_TYPES: Readonly<Record<Type, Column['type']>> = {
  text: 'text',
  number: 'number',
  integer: 'integer',
  boolean: 'json',
  timestamp: 'unix_microseconds',
  datetime: 'unix_microseconds',
  json: 'json',
  null: 'text',
};

/** The columns of fields by which the embedded store splits the records. Each adds a subquery. */
const MAX_SPLITS = 3;

/** Of the texts that an index knows. */
const MAX_INDEXED_TEXTS = 3;

export function compileQuery(query: Query, store: StoreName, maxRows: number): CompiledQuery {
  return new QueryCompiler(query, store).compile(maxRows);
}

/** What is known about the records of a subquery: which fields are in their columns, and which are not. */
interface Known {
  readonly present: readonly MetadataField[];
  readonly absent: readonly MetadataField[];
}

/** The SQL of a value that depends on where the value is used; undefined: it does not. */
type Special = (value: Value) => string | undefined;

class QueryCompiler {
  readonly #query: Query;
  readonly #store: StoreName;
  readonly #kind: LogKind;
  /** The searchable fields of the kind that have a column. */
  readonly #fields: readonly MetadataField[];
  readonly #dialect: Dialect;
  readonly #operations: ReturnType<typeof operationsOf>;
  readonly #requiredText: RequiredText;
  readonly #values: Record<string, BoundValue> = {};
  readonly #names = new Map<string, string>();

  constructor(query: Query, store: StoreName) {
    this.#query = query;
    this.#store = store;
    this.#kind = query.kind ?? LOG_KINDS[0];
    this.#fields = metadataFieldsOf(this.#kind);
    this.#dialect = new LogSql(store, this.#kind).dialect;
    this.#operations = operationsOf(STUDIO_DIALECTS[store], this.#dialect);
    this.#requiredText = query.where === undefined ? NO_TEXT : requiredTextOf(query.where);
  }

  compile(maxRows: number): CompiledQuery {
    const { outputs, groups, limit = Number.POSITIVE_INFINITY } = this.#query;
    const end = `limit ${this.#bind({ type: 'integer', value: Math.min(limit, maxRows + 1) })}`;
    return {
      sql: groups === undefined ? this.#rows(end) : this.#groups(groups, end),
      values: this.#values,
      columns: outputs.map(({ name, value }) => ({ name, type: COLUMN_TYPES[value.type] })),
      requiredText: this.#requiredText,
    };
  }

  /** A row for each record. Without an order, the newest come first; so do those of records that are equal in the order. */
  #rows(limit: string): string {
    const { outputs, order } = this.#query;
    const keys = order.flatMap(({ value, descending }) => orderKeys(value).map(key => ({ key, descending })));
    const columns = (known: Known) => [
      ...outputs.map(({ value }, index) => `${this.#output(value, this.#inRecord(known))} as o${index}`),
      ...keys.map(({ key }, index) => `${this.#value(key, this.#inRecord(known))} as k${index}`),
      'timestamp as t',
      'id as i',
    ];
    const select = `select ${outputs.map((_, index) => `o${index}`).join(', ')} from`;
    const orders = [...keys.map(({ descending }, index) => ordered(`k${index}`, descending)), 't desc', 'i'];
    const end = `order by ${orders.join(', ')} ${limit}`;
    const direction = this.#store === 'duckdb' ? this.#timeOrder() : undefined;
    if (direction === undefined) return `${select} (${this.#records(columns)}) ${end}`;
    // The first step finds the last timestamp from few columns. The second step then reads messages and metadata of the rows only.
    const [extreme, none, operator] =
      direction === 'desc' ? ['min', 'infinity', '>='] : ['max', '-infinity', '<='];
    const page = `select t from (${this.#records(() => ['timestamp as t'])}) order by t ${direction} ${limit}`;
    const last = `(select coalesce(${extreme}(t), '${none}'::timestamp) as last_time from page)`;
    const records = this.#records(columns, `, ${last}`, `timestamp ${operator} last_time`);
    return `with page as materialized (${page}) ${select} (${records}) ${end}`;
  }

  /** Whether the rows are ordered by time first. */
  #timeOrder(): 'asc' | 'desc' | undefined {
    const [first] = this.#query.order;
    if (first === undefined) return 'desc';
    if (!('column' in first.value && first.value.column === 'timestamp')) return undefined;
    return first.descending ? 'desc' : 'asc';
  }

  #groups(groups: readonly Value[], limit: string): string {
    const { outputs, having, order } = this.#query;
    const keys = new Map(groups.map((value, index) => [keyOf(value), { name: `g${index}`, value }]));
    /** The arguments of aggregates, which the subquery computes. */
    const args = new Map<string, { readonly name: string; readonly value: Value }>();
    const inGroup: Special = value => {
      const key = keys.get(keyOf(value));
      if (key !== undefined) return key.name;
      if (!isAggregate(value) || !('operation' in value)) return undefined;
      const [argument] = value.args;
      if (argument === undefined) return this.#operations.count([]);
      const name = args.get(keyOf(argument))?.name ?? `a${args.size}`;
      args.set(keyOf(argument), { name, value: argument });
      return this.#operations[value.operation]([name], value.type);
    };
    const select = outputs.map(({ value }, index) => `${this.#output(value, inGroup)} as c${index}`);
    const condition = having === undefined ? '' : ` having ${this.#value(having, inGroup)}`;
    const names = [...keys.values()].map(({ name }) => name);
    const orders = [
      ...order.flatMap(({ value, descending }) =>
        orderKeys(value).map(key => ordered(this.#value(key, inGroup), descending)),
      ),
      ...names.map(name => ordered(name, false)),
    ];
    const records = this.#records(known => [
      '1 as one',
      ...[...keys.values(), ...args.values()].map(
        ({ name, value }) => `${this.#value(value, this.#inRecord(known))} as ${name}`,
      ),
    ]);
    const groupBy = names.length === 0 ? '' : ` group by ${names.join(', ')}`;
    const orderBy = orders.length === 0 ? '' : ` order by ${orders.join(', ')}`;
    return `select ${select.join(', ')} from (${records})${groupBy}${condition}${orderBy} ${limit}`;
  }

  /**
   * The records that the query reads. `columns` are what the subquery computes for each. With `from`, they are few, so that they need
   * not be split.
   */
  #records(columns: (known: Known) => readonly string[], from = '', condition = ''): string {
    const { kind, where, required } = this.#query;
    const splits = from === '' ? this.#listSplits() : [{ present: [], absent: [] }];
    return splits
      .map(known => {
        const conditions = [
          STUDIO_DIALECTS[this.#store].inRange,
          ...(condition === '' ? [] : [condition]),
          ...(kind === undefined ? [this.#operations.false()] : []),
          ...known.present.map(({ column }) => `${column} is not null`),
          ...known.absent.map(({ column }) => `${column} is null`),
          ...this.#listIndexed(),
          ...required.flatMap(path => this.#hasObject(path, known)),
          ...(where === undefined ? [] : [this.#value(where, this.#inRecord(known))]),
        ];
        return `select ${columns(known).join(', ')} from ${this.#kind}_logs${from} where ${conditions.join(' and ')}`;
      })
      .join(' union all ');
  }

  /** Conditions for which ClickHouse has an index. Each costs time, and the longest texts exclude the most records. */
  #listIndexed(): string[] {
    const { indexedText } = this.#dialect;
    const texts = indexedText === undefined ? [] : [...new Set(listTexts(this.#requiredText))];
    const longest = texts.sort((one, other) => other.length - one.length).slice(0, MAX_INDEXED_TEXTS);
    return longest.map(text => `${indexedText} like ${this.#bind({ type: 'text', value: `%${text}%` })}`);
  }

  /**
   * The embedded store reads the records that have all fields in columns, and then those that lack the first, the second and so on.
   * DuckDB can skip the metadata of the former, and finds the latter by their columns.
   */
  #listSplits(): Known[] {
    if (this.#store !== 'duckdb') return [{ present: [], absent: [] }];
    const { where, outputs, groups = [], order, having, required } = this.#query;
    const values = [where, having, ...groups, ...[...outputs, ...order].map(({ value }) => value)];
    const read = values.flatMap(value => (value === undefined ? [] : listReadPaths(value)));
    const ofValues = this.#fields.filter(field => read.some(paths => isField(field, paths)));
    const ofObjects = required.flatMap(
      path => [...ofValues, ...this.#fields].find(field => isBelow(field, path)) ?? [],
    );
    const splits = [...new Set([...ofValues, ...ofObjects])].slice(0, MAX_SPLITS);
    return [
      { present: splits, absent: [] },
      ...splits.map((field, index) => ({ present: splits.slice(0, index), absent: [field] })),
    ];
  }

  /** Conditions that are true if the record has the object. A flat key such as `request.method` counts as the object `request`. */
  #hasObject(path: Path, { present, absent }: Known): string[] {
    if (present.some(field => isBelow(field, path))) return [];
    const flat = this.#fields.filter(field => isBelow(field, path) && !absent.includes(field));
    const isObject = this.#dialect.isTrue(this.#dialect.isObject(this.#json([path])));
    return [`(${[...flat.map(({ column }) => `${column} is not null`), isObject].join(' or ')})`];
  }

  #output(value: Value, special: Special): string {
    const sql = this.#value(value, special);
    return value.type === 'boolean' ? this.#operations['boolean to text']([sql]) : sql;
  }

  #value(value: Value, special: Special): string {
    const sql = special(value);
    if (sql !== undefined) return sql;
    if ('bound' in value) {
      const parameter = this.#bind(value.bound);
      return value.type === 'number' ? this.#dialect.toNumber(parameter) : parameter;
    }
    if (!('operation' in value)) throw new Error('a value of a record is used outside of its subquery');
    const sqls = value.args.map(each => this.#value(each, special));
    return this.#operations[value.operation](sqls, value.type);
  }

  /** Columns and fields of a record. A field in a column is read there: both stores have the same text. */
  #inRecord({ present, absent }: Known): Special {
    return value => {
      if ('column' in value) return value.column;
      if ('paths' in value) {
        const isMetadata = value.paths[0]?.length === 0;
        return isMetadata ? this.#dialect.metadata : this.#dialect.jsonValue(this.#json(value.paths));
      }
      const paths = readPathsOf(value);
      if (paths === undefined || !('operation' in value)) return undefined;
      const read = (text: string) => this.#operations[value.operation]([text], value.type);
      const field = this.#fields.find(each => isField(each, paths));
      if (field === undefined || absent.includes(field)) return read(this.#json(paths));
      const ofColumn = value.operation === 'scalar' ? field.column : read(field.column);
      return present.includes(field) ? ofColumn : `coalesce(${ofColumn}, ${read(this.#json(paths))})`;
    };
  }

  /** The JSON of the first of these values that a record has. */
  #json(paths: readonly Path[]): string {
    const quote = (key: string) => this.#bind({ type: 'text', value: key });
    const all = paths.map(path =>
      path.length === 0 ? this.#dialect.metadata : this.#dialect.json(path, quote),
    );
    return all.length === 1 ? `${all[0]}` : this.#operations.coalesce(all);
  }

  /** The parameter of a value. A value that occurs twice has one parameter. */
  #bind(value: BoundValue): string {
    const key = `${value.type} ${value.value}`;
    const name = this.#names.get(key) ?? `_studio_${this.#names.size}`;
    this.#names.set(key, name);
    this.#values[name] = value;
    return STUDIO_DIALECTS[this.#store].bound(name, value.type);
  }
}

const NO_TEXT: RequiredText = { all: [] };

/** In BigQuery, null is less than every other value. */
function ordered(sql: string, descending: boolean): string {
  return `${sql} ${descending ? 'desc nulls last' : 'asc nulls first'}`;
}

/** A field is ordered by its number, then by its text. */
function orderKeys(value: Value): Value[] {
  if (value.type !== 'json') return [value];
  return [
    { operation: 'to number', args: [value], type: 'number' },
    { operation: 'scalar', args: [value], type: 'text' },
  ];
}

function isField({ field, keys }: MetadataField, [path, ...others]: readonly Path[]): boolean {
  // The column of a path lacks the query string.
  return field !== 'path' && others.length === 0 && path?.join('.') === keys.join('.');
}

function isBelow({ keys }: MetadataField, path: Path): boolean {
  return keys.length > path.length && path.every((key, index) => key === keys[index]);
}

/** The field that an operation reads as a text or as a number. */
function readPathsOf(value: Value): readonly Path[] | undefined {
  if (!('operation' in value) || (value.operation !== 'scalar' && value.operation !== 'to number'))
    return undefined;
  const [argument] = value.args;
  return argument !== undefined && 'paths' in argument ? argument.paths : undefined;
}

function listReadPaths(value: Value): (readonly Path[])[] {
  const paths = readPathsOf(value);
  if (paths !== undefined) return [paths];
  return 'operation' in value ? value.args.flatMap(listReadPaths) : [];
}

/** Text that a record must contain so that the condition can be true. */
function requiredTextOf(value: Value): RequiredText {
  if (!('operation' in value)) return NO_TEXT;
  const { operation, args } = value;
  if (operation === 'and') return { all: args.map(requiredTextOf) };
  if (operation === 'or') return { any: args.map(requiredTextOf) };
  const [subject = value, ...parts] = args;
  if (operation === 'in')
    return {
      any: parts.map(part => requiredTextOf({ operation: '=', args: [subject, part], type: 'boolean' })),
    };
  const [part] = parts;
  if (part === undefined || !('bound' in part) || part.type !== 'text') return NO_TEXT;
  if (!/^(=|contains|starts with|ends with|matches)$/.test(operation)) return NO_TEXT;
  const bound = String(part.bound.value);
  const text = operation === 'matches' ? literalsOf(bound) : bound;
  if (isMessage(subject)) return requireTexts([text]);
  const isField = 'operation' in subject && subject.operation === 'scalar' && readPathsOf(subject);
  // A number can be written in several ways.
  return !isField || /^[-+.0-9e\s]*$/i.test(text) ? NO_TEXT : requireTexts([text]);
}

/** The texts that all records of the result contain. */
function listTexts(required: RequiredText): string[] {
  if ('all' in required) return required.all.flatMap(listTexts);
  return 'text' in required ? [required.text] : [];
}

function isMessage(value: Value): boolean {
  if ('operation' in value && /^(lower|upper)$/.test(value.operation)) return value.args.every(isMessage);
  return 'column' in value && value.column === 'event_message';
}

/** The literals of a regular expression, with line breaks between them. Empty if it has more than literals and wildcards. */
function literalsOf(pattern: string): string {
  const literals = pattern
    .replace(/^\(\?[is]+\)/, '')
    .replace(/\[[^\\^\]]\]|\\[^\w\s]|\.[*+?]?\??|[\^$]/g, '\n');
  return isPlainText(literals) ? literals : '';
}
