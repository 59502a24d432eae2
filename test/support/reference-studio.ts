// A plain reading of Studio's queries: random queries in BigQuery's dialect, each with a function that computes its rows from the
// records. Shares no code with the compiler.
import fc from 'fast-check';
import type { LogRecord } from '../../src/domain/log-record.ts';
import { isOnClickHouse } from './clickhouse.ts';
import { readField } from './reference-search.ts';

type Json = string | number | boolean | null | object;
/** `undefined` does not occur: what a record lacks is null. */
type Scalar = string | number | boolean | null;

interface Expression<T extends Scalar | Json> {
  readonly sql: string;
  read(log: LogRecord): T;
}

interface Join {
  readonly alias: string;
  readonly path: readonly string[];
  readonly from: string;
  readonly isLeft: boolean;
}

export interface RandomQuery {
  readonly sql: string;
  /** Rows in the order of the response, or in any order. */
  readonly isOrdered: boolean;
  /** Whether a record has the objects, and satisfies the condition. */
  matches(log: LogRecord): boolean;
  rowsOf(logs: readonly LogRecord[]): Record<string, unknown>[];
}

const TEXTS = [
  'GET',
  'get',
  'POST',
  'é',
  'É',
  'a%b',
  'a_b',
  'axb',
  '',
  "it's",
  'back\\slash',
  '500',
  '/a/b',
  'a"b',
  'line\nbreak',
  'true',
];
const NUMBERS = [0, 7, -3, 1.5, 200, 404, 500, 503];
const scalarValue = fc.constantFrom<Json>(...TEXTS, ...NUMBERS, true, false, null);

// Records

/** All objects of a record are wrapped in arrays, or none is; some have flat keys. */
export const recordDraft = fc
  .record({
    request: fc.option(
      fc.record(
        {
          method: scalarValue,
          host: fc.constantFrom('h1', 'h2', null),
          search: scalarValue,
          headers: fc.option(fc.record({ ip: scalarValue, agent: scalarValue }, { requiredKeys: [] }), {
            nil: undefined,
          }),
        },
        { requiredKeys: [] },
      ),
      { nil: undefined, freq: 5 },
    ),
    response: fc.option(
      fc.record(
        { status_code: scalarValue, time: fc.constantFrom<Json>(...NUMBERS, '12', 'x', null) },
        { requiredKeys: [] },
      ),
      { nil: undefined, freq: 5 },
    ),
    level: scalarValue,
    form: fc.constantFrom('plain', 'plain', 'wrapped', 'flat', 'odd'),
    message: fc.array(fc.constantFrom(...TEXTS, ' ', 'error'), { maxLength: 3 }).map(parts => parts.join('')),
  })
  .map(
    ({ form, message, ...metadata }) =>
      (id: string, micros: number): LogRecord => ({
        id,
        timestampMicros: micros,
        project: 'default',
        eventMessage: message,
        metadata: JSON.stringify(shape(metadata, form)),
        extracted: { url: '', path: '' },
      }),
  );

function shape(metadata: Record<string, unknown>, form: string): unknown {
  const { request, response, level } = metadata as Record<string, Record<string, unknown> | undefined>;
  if (form === 'odd')
    return { request: request === undefined ? 'text' : [request, request], response: response ?? [], level };
  if (form === 'flat')
    return Object.fromEntries([
      ['level', level],
      ...Object.entries(request ?? {})
        .filter(([key]) => key !== 'headers')
        .map(([key, value]) => [`request.${key}`, value]),
      ...Object.entries(response ?? {}).map(([key, value]) => [`response.${key}`, value]),
    ]);
  const wrap = (value: object | undefined) => (form === 'wrapped' && value !== undefined ? [value] : value);
  const headers = wrap(request?.['headers'] as object | undefined);
  return { request: wrap(request && { ...request, headers }), response: wrap(response), level };
}

// Values of records

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const only = (value: unknown) => (Array.isArray(value) && value.length === 1 ? value[0] : undefined);
const step = (value: unknown, key: string) =>
  isObject(value) && Object.hasOwn(value, key) ? value[key] : undefined;

/** Undefined: the record does not have the value. */
function readPath(log: LogRecord, path: readonly string[]): Json | undefined {
  const metadata = JSON.parse(log.metadata);
  const nested = path.reduce<unknown>(step, metadata);
  const wrapped = path.reduce<unknown>((value, key, i) => step(i === 0 ? value : only(value), key), metadata);
  const flat = path.length > 1 ? step(metadata, path.join('.')) : undefined;
  return [nested, wrapped, flat].find(value => value !== undefined) as Json | undefined;
}

const FIELDS: Readonly<Record<string, string>> = {
  'response.status_code': 'status',
  'request.method': 'method',
  'request.host': 'host',
};

function hasObject(log: LogRecord, path: readonly string[]): boolean {
  const value = readPath(log, path);
  const isPresent = isObject(value) || (Array.isArray(value) && value.length === 1 && isObject(value[0]));
  const below = Object.entries(FIELDS).filter(([name]) => name.startsWith(`${path.join('.')}.`));
  return isPresent || below.some(([, field]) => readField('edge', log, field) !== undefined);
}

class Field implements Expression<Json> {
  readonly sql: string;
  readonly paths: readonly (readonly string[])[];

  constructor(sql: string, paths: readonly (readonly string[])[]) {
    this.sql = sql;
    this.paths = paths;
  }

  read(log: LogRecord): Json {
    return this.paths.map(path => readPath(log, path)).find(value => value !== undefined) ?? null;
  }

  text(log: LogRecord): string | null {
    const value = this.#searchable(log) ?? this.read(log);
    return typeof value === 'object' ? null : String(value);
  }

  number(log: LogRecord): number | null {
    const value = this.#searchable(log) ?? this.read(log);
    if (typeof value === 'number') return value;
    return typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : null;
  }

  #searchable(log: LogRecord): string | undefined {
    const [path = [], ...others] = this.paths;
    const field = others.length === 0 ? FIELDS[path.join('.')] : undefined;
    return field === undefined ? undefined : readField('edge', log, field);
  }
}

// Literals and words, in the forms that people write

const quoted = (value: string) =>
  fc.constantFrom(
    `'${value.replaceAll('\\', '\\\\').replaceAll("'", "''").replaceAll('\n', '\\n')}'`,
    `'${value.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`,
    `"${value.replaceAll('\\', '\\\\').replaceAll('"', '\\"')}"`,
    `"${value.replaceAll('\\', '\\\\').replaceAll('"', '""')}"`,
  );
const word = (text: string) =>
  fc.constantFrom(text, text.toUpperCase(), `${text} /* ' */`, `${text} -- "\n`, ` # ;\n${text}`);

// Expressions

function fieldOf(joins: readonly Join[]): fc.Arbitrary<Field> {
  const keys: Readonly<Record<string, readonly string[]>> = {
    '': ['level'],
    request: ['method', 'host', 'search'],
    'request.headers': ['ip', 'agent'],
    response: ['status_code', 'time'],
  };
  const fields = joins.flatMap(({ alias, path }) =>
    (keys[path.join('.')] ?? []).flatMap(key => {
      const bare = [...joins].reverse().map(join => [...join.path, key]);
      const qualified = [[...path, key]];
      return [
        new Field(`${alias}.${key}`, qualified),
        new Field(`${alias.toUpperCase()}.${key}`, qualified),
        new Field(`\`${alias}.${key}\``, qualified),
        new Field(key, bare),
      ];
    }),
  );
  return fc.constantFrom(...fields);
}

/** ASCII letters only, as the compiler documents. */
/** Not every ClickHouse knows letters beyond ASCII. */
const changed = () => (isOnClickHouse() ? /[a-z]/gi : /./gu);
const toLower = (text: string) => text.replace(changed(), letter => letter.toLowerCase());
const toUpper = (text: string) => text.replace(changed(), letter => letter.toUpperCase());

type Text = Expression<string | null>;
type Condition = Expression<boolean | null>;

function textOf(joins: readonly Join[]): fc.Arbitrary<Text> {
  const plain = fc.oneof(
    fieldOf(joins).map(field => ({ sql: field.sql, read: (log: LogRecord) => field.text(log) })),
    fc.constant<Text>({ sql: 'event_message', read: log => log.eventMessage }),
    fc.constant<Text>({ sql: 't.id', read: log => log.id }),
  );
  const map = (name: string, change: (text: string) => string) =>
    fc.tuple(word(name), plain).map(([call, { sql, read }]): Text => {
      return {
        sql: `${call}(${sql})`,
        read: log => {
          const value = read(log);
          return value === null ? null : change(value);
        },
      };
    });
  return fc.oneof(
    { arbitrary: plain, weight: 5 },
    { arbitrary: map('lower', toLower), weight: 1 },
    { arbitrary: map('upper', toUpper), weight: 1 },
    {
      arbitrary: fc.constantFrom(...TEXTS).chain(value =>
        fc.tuple(plain, quoted(value), fc.constantFrom('coalesce', 'ifnull')).map(
          ([{ sql, read }, literal, call]): Text => ({
            sql: `${call}(${sql}, ${literal})`,
            read: log => read(log) ?? value,
          }),
        ),
      ),
      weight: 1,
    },
    {
      arbitrary: fieldOf(joins).chain(field =>
        fc
          .constantFrom(`cast(${field.sql} as string)`, `${field.sql}::text`)
          .map((sql): Text => ({ sql, read: log => field.text(log) })),
      ),
      weight: 1,
    },
  );
}

function numberOf(joins: readonly Join[]): fc.Arbitrary<Expression<number | null>> {
  return fieldOf(joins).chain(field =>
    fc.constantFrom('int64', 'INT64', 'float64').chain(type =>
      fc.constantFrom('cast', 'safe_cast', 'SAFE_CAST').map(call => ({
        sql: `${call}(${field.sql} as ${type})`,
        read: (log: LogRecord) => {
          const value = field.number(log);
          if (value === null || type === 'float64') return value;
          return Math.sign(value) * Math.floor(Math.abs(value) + 0.5) + 0;
        },
      })),
    ),
  );
}

const compare = <T extends string | number | boolean>(
  operator: string,
  a: T | null,
  b: T | null,
): boolean | null => {
  if (a === null || b === null) return null;
  if (operator === '=') return a === b;
  if (operator === '!=' || operator === '<>') return a !== b;
  if (operator === '<') return a < b;
  if (operator === '<=') return a <= b;
  return operator === '>' ? a > b : a >= b;
};
const not = (value: boolean | null) => (value === null ? null : !value);
const or = (values: readonly (boolean | null)[]) =>
  values.includes(true) ? true : values.includes(null) ? null : false;
const and = (values: readonly (boolean | null)[]) => not(or(values.map(not)));

function matchesLike(text: string | null, pattern: readonly string[]): boolean | null {
  if (text === null) return null;
  const [part, ...rest] = pattern;
  if (part === undefined) return text === '';
  if (part === '%')
    return Array.from({ length: text.length + 1 }, (_, i) => matchesLike(text.slice(i), rest)).includes(true);
  if (part === '_') return text !== '' && matchesLike([...text].slice(1).join(''), rest);
  const literal = part.replace(/^\\/, '');
  return text.startsWith(literal) && matchesLike(text.slice(literal.length), rest);
}

const OPERATORS = ['=', '!=', '<>', '<', '<=', '>', '>='];
const PATTERNS = [
  ...['GET', '^a.b$', '[0-9]+', '(?i)get|post', 'é', '\\d{3}', 's', '^$', 'k.b'],
  ...['(?i)Po[s]t', '^5[0]0$', 'back.sl', 'ERR?', 'err.*or', '(?i)ERROR', 'line?.brea', '(?i)[t]rue'],
];

function conditionOf(joins: readonly Join[], depth: number): fc.Arbitrary<Condition> {
  const text = textOf(joins);
  const negated = (sql: string, sqlNot: string, read: Condition['read']) =>
    fc.boolean().map(
      (isNot): Condition => ({
        sql: isNot ? sqlNot : sql,
        read: log => (isNot ? not(read(log)) : read(log)),
      }),
    );
  const literal = fc.constantFrom(...TEXTS).chain(value => quoted(value).map(sql => ({ sql, value })));
  const compareTexts = fc
    .tuple(text, fc.constantFrom(...OPERATORS), literal, fc.boolean())
    .map(
      ([{ sql, read }, operator, { sql: other, value }, isSwapped]): Condition =>
        isSwapped
          ? { sql: `${other} ${operator} ${sql}`, read: log => compare(operator, value, read(log)) }
          : { sql: `${sql} ${operator} ${other}`, read: log => compare(operator, read(log), value) },
    );
  const numbers = fc
    .tuple(
      fc.oneof(
        fieldOf(joins).map(field => ({ sql: field.sql, read: (log: LogRecord) => field.number(log) })),
        numberOf(joins),
      ),
      fc.constantFrom(...OPERATORS),
      fc.constantFrom(...NUMBERS),
    )
    .map(
      ([{ sql, read }, operator, number]): Condition => ({
        sql: `${sql} ${operator} ${number}`,
        read: log => compare(operator, read(log), number),
      }),
    );
  const between = fc
    .tuple(fieldOf(joins), fc.constantFrom(...NUMBERS), fc.constantFrom(...NUMBERS))
    .chain(([field, low, high]) =>
      negated(
        `${field.sql} between ${low} and ${high}`,
        `${field.sql} not between ${low} and ${high}`,
        log => {
          const value = field.number(log);
          return and([compare('>=', value, low), compare('<=', value, high)]);
        },
      ),
    );
  const list = fc
    .tuple(text, fc.array(literal, { minLength: 1, maxLength: 3 }), fc.boolean(), word('in'))
    .chain(([{ sql, read }, items, hasNull, isIn]) => {
      const sqlItems = [...items.map(item => item.sql), ...(hasNull ? ['null'] : [])].join(', ');
      return negated(`${sql} ${isIn} (${sqlItems})`, `${sql} not ${isIn} (${sqlItems})`, log =>
        or([...items.map(({ value }) => compare('=', read(log), value)), ...(hasNull ? [null] : [])]),
      );
    });
  const like = fc
    .tuple(
      text,
      fc.array(fc.constantFrom('%', '_', 'a', 'b', 'GET', '\\%', '\\_', '\\\\', '50', 'é'), { maxLength: 4 }),
      word('like'),
    )
    .chain(([{ sql, read }, pattern, isLike]) =>
      quoted(pattern.join('')).chain(other =>
        negated(`${sql} ${isLike} ${other}`, `${sql} not ${isLike} ${other}`, log =>
          matchesLike(read(log), pattern),
        ),
      ),
    );
  const regexp = fc
    .tuple(text, fc.constantFrom(...PATTERNS), word('regexp_contains'))
    .chain(([{ sql, read }, pattern, call]) =>
      quoted(pattern).map((other): Condition => {
        const isCaseIgnored = pattern.startsWith('(?i)');
        const expression = new RegExp(pattern.replace('(?i)', ''), isCaseIgnored ? 'iu' : 'u');
        return {
          sql: `${call}(${sql}, ${other})`,
          read: log => {
            const value = read(log);
            return value === null ? null : expression.test(value);
          },
        };
      }),
    );
  const starts = fc.tuple(text, literal).map(
    ([{ sql, read }, { sql: other, value }]): Condition => ({
      sql: `starts_with(${sql}, ${other})`,
      read: log => read(log)?.startsWith(value) ?? null,
    }),
  );
  const isNull = fc
    .oneof(fieldOf(joins), text)
    .chain(each => negated(`${each.sql} is null`, `${each.sql} IS NOT NULL`, log => each.read(log) === null));
  const constant = fc.constantFrom<Condition>(
    { sql: 'true', read: () => true },
    { sql: 'FALSE', read: () => false },
  );
  const leaves = fc.oneof(
    compareTexts,
    compareTexts,
    numbers,
    between,
    list,
    like,
    regexp,
    starts,
    isNull,
    constant,
  );
  if (depth === 0) return leaves;
  const inner = conditionOf(joins, depth - 1);
  const joined = fc
    .tuple(fc.constantFrom('and', 'or', 'AND', 'Or'), fc.array(inner, { minLength: 2, maxLength: 3 }))
    .map(
      ([operator, parts]): Condition => ({
        sql: `(${parts.map(({ sql }) => sql).join(` ${operator} `)})`,
        read: log => (operator.toLowerCase() === 'and' ? and : or)(parts.map(part => part.read(log))),
      }),
    );
  const negation = inner.map(
    ({ sql, read }): Condition => ({ sql: `not (${sql})`, read: log => not(read(log)) }),
  );
  return fc.oneof(
    { arbitrary: leaves, weight: 2 },
    { arbitrary: joined, weight: 3 },
    { arbitrary: negation, weight: 1 },
  );
}

// Queries

const joinsOf: fc.Arbitrary<readonly Join[]> = fc
  .record({
    left: fc.array(fc.boolean(), { minLength: 4, maxLength: 4 }),
    depth: fc.constantFrom(1, 2, 3, 4),
    shadows: fc.boolean(),
  })
  .map(({ left, depth, shadows }) => {
    const root = shadows ? 'metadata' : 'm';
    const all: readonly Omit<Join, 'isLeft'>[] = [
      { alias: root, path: [], from: shadows ? 'metadata' : 't.metadata' },
      { alias: 'r', path: ['request'], from: `${root}.request` },
      { alias: 's', path: ['response'], from: `${root}.response` },
      { alias: 'h', path: ['request', 'headers'], from: 'r.headers' },
    ];
    return all.slice(0, depth).map((join, i) => ({ ...join, isLeft: left[i] ?? false }));
  });

const toWrapped = (value: unknown, isItem = false): unknown => {
  if (Array.isArray(value)) return value.map(item => toWrapped(item, true));
  if (!isObject(value)) return value;
  const object = Object.fromEntries(Object.entries(value).map(([key, part]) => [key, toWrapped(part)]));
  return isItem ? object : [object];
};

/** Null is the least value. */
const order = (a: Scalar, b: Scalar): number => {
  if (a === null || b === null) return Number(a !== null) - Number(b !== null);
  return a < b ? -1 : a > b ? 1 : 0;
};

const truncate = (log: LogRecord, micros: number) => Math.floor(log.timestampMicros / micros) * micros;

export const randomQuery: fc.Arbitrary<RandomQuery> = joinsOf.chain(joins =>
  fc
    .record({
      where: fc.option(conditionOf(joins, 2), { nil: undefined, freq: 6 }),
      select: word('select'),
      from: word('from'),
      table: fc.constantFrom('edge_logs as t', '`edge_logs` t', 'EDGE_LOGS AS t'),
      isComma: fc.boolean(),
    })
    .chain(({ where, select, from, table, isComma }) => {
      const sqlJoins = joins.map(({ alias, from: path, isLeft }) => {
        if (isLeft) return ` left join unnest(${path}) as ${alias} on true`;
        return isComma ? `, unnest(${path}) ${alias}` : ` cross join unnest(${path}) as ${alias}`;
      });
      const source = `${from} ${table}${sqlJoins.join('')}${where === undefined ? '' : ` where ${where.sql}`}`;
      const select1 = (columns: string) => `${select} ${columns} ${source}`;
      const filter = (logs: readonly LogRecord[]) =>
        logs.filter(
          log =>
            joins.every(({ path, isLeft }) => isLeft || path.length === 0 || hasObject(log, path)) &&
            (where === undefined || where.read(log) === true),
        );
      const matches = (log: LogRecord) => filter([log]).length > 0;
      return fc
        .oneof(rowsOf(joins, select1, filter), groupsOf(joins, select1, filter))
        .map(query => ({ ...query, matches }));
    }),
);

type Select = (columns: string) => string;
type Filter = (logs: readonly LogRecord[]) => LogRecord[];

/** Values, as a column of the response has them. */
function columnOf(joins: readonly Join[]): fc.Arbitrary<Expression<Json>> {
  const column = (sql: string, read: (log: LogRecord) => Json): Expression<Json> => ({ sql, read });
  return fc.oneof(
    fieldOf(joins).map(field => column(field.sql, log => toWrapped(field.read(log)) as Json)),
    textOf(joins)
      .map(({ sql, read }) => column(sql, read as Expression<Json>['read']))
      .filter(({ sql }) => !/^[\w.`]+$/.test(sql)),
    numberOf(joins),
    conditionOf(joins, 0).map(({ sql, read }) => column(`(${sql})`, read as Expression<Json>['read'])),
    fc.constant(column('timestamp_trunc(t.timestamp, hour)', log => truncate(log, 3_600_000_000))),
    fc.constant(
      column('cast(timestamp as datetime)', log => {
        const fraction = log.timestampMicros % 1_000_000;
        const seconds = new Date(log.timestampMicros / 1000).toISOString().slice(0, 19);
        return fraction === 0 ? seconds : `${seconds}.${String(fraction).padStart(6, '0')}`;
      }),
    ),
  );
}

function rowsOf(
  joins: readonly Join[],
  select: Select,
  filter: Filter,
): fc.Arbitrary<Omit<RandomQuery, 'matches'>> {
  return fc
    .record({
      columns: fc.array(columnOf(joins), { maxLength: 3 }),
      order: fc.option(fc.tuple(textOf(joins), fc.constantFrom('', ' asc', ' DESC')), { nil: undefined }),
      limit: fc.option(fc.constantFrom(0, 1, 5, 30), { nil: undefined }),
      end: fc.constantFrom('', ';', ' ; -- end'),
    })
    .map(({ columns, order: ordering, limit, end }) => {
      const list = columns.map(({ sql }, i) => `, ${sql} as c${i}`).join('');
      const orderBy =
        ordering === undefined
          ? ''
          : ` order by ${ordering[0].sql.replace(/^[\w.`]+$/, 'lower($&)')}${ordering[1]}`;
      return {
        sql: `${select(`id${list}`)}${orderBy}${limit === undefined ? '' : ` limit ${limit}`}${end}`,
        isOrdered: true,
        rowsOf: logs => {
          const key = (log: LogRecord) => {
            const value = ordering?.[0].read(log) ?? null;
            return value !== null && /^[\w.`]+$/.test(ordering?.[0].sql ?? '') ? toLower(value) : value;
          };
          const sorted = filter(logs).sort(
            (a, b) =>
              (ordering?.[1] === ' DESC' ? -1 : 1) * order(key(a), key(b)) ||
              b.timestampMicros - a.timestampMicros ||
              order(a.id, b.id),
          );
          return sorted.slice(0, limit).map(log => ({
            id: log.id,
            ...Object.fromEntries(columns.map(({ read }, i) => [`c${i}`, read(log)])),
          }));
        },
      };
    });
}

interface Aggregate {
  readonly sql: string;
  read(logs: readonly LogRecord[]): Scalar;
}

function aggregateOf(joins: readonly Join[]): fc.Arbitrary<Aggregate> {
  const numbers = (logs: readonly LogRecord[], read: Expression<number | null>['read']) =>
    logs.map(read).filter(value => value !== null);
  const sum = (values: readonly number[]) => (values.length === 0 ? null : values.reduce((a, b) => a + b, 0));
  return fc.oneof(
    fc.constantFrom('count(*)', 'COUNT( * )').map((sql): Aggregate => ({ sql, read: logs => logs.length })),
    textOf(joins).map(
      ({ sql, read }): Aggregate => ({
        sql: `count(${sql})`,
        read: logs => logs.filter(log => read(log) !== null).length,
      }),
    ),
    textOf(joins)
      .map(
        ({ sql, read }): Aggregate => ({
          sql: `count(DISTINCT ${sql})`,
          // A field is compared as JSON: the text "7" and the number 7 differ.
          read: logs => new Set(logs.map(read).filter(value => value !== null)).size,
        }),
      )
      .filter(({ sql }) => /\((?:lower|upper|coalesce|ifnull|cast|t\.id|event)|DISTINCT [^()]*::/i.test(sql)),
    conditionOf(joins, 1).map(
      ({ sql, read }): Aggregate => ({
        sql: `count(case when ${sql} then 1 end)`,
        read: logs => logs.filter(log => read(log) === true).length,
      }),
    ),
    numberOf(joins).map(
      ({ sql, read }): Aggregate => ({ sql: `sum(${sql})`, read: logs => sum(numbers(logs, read)) }),
    ),
    numberOf(joins).map(
      ({ sql, read }): Aggregate => ({
        sql: `avg(${sql})`,
        read: logs => {
          const values = numbers(logs, read);
          return values.length === 0 ? null : (sum(values) ?? 0) / values.length;
        },
      }),
    ),
    fieldOf(joins).map(
      (field): Aggregate => ({
        sql: `min(${field.sql})`,
        read: logs =>
          numbers(logs, log => field.number(log)).sort((a, b) => a - b)[0] ??
          logs
            .flatMap(log => field.text(log) ?? [])
            .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))[0] ??
          null,
      }),
    ),
    fc.constant<Aggregate>({
      sql: 'max(event_message)',
      read: logs =>
        logs
          .map(log => log.eventMessage)
          .sort()
          .at(-1) ?? null,
    }),
    fc.constant<Aggregate>({
      sql: 'max(timestamp)',
      read: logs => (logs.length === 0 ? null : Math.max(...logs.map(log => log.timestampMicros))),
    }),
  );
}

function groupsOf(
  joins: readonly Join[],
  select: Select,
  filter: Filter,
): fc.Arbitrary<Omit<RandomQuery, 'matches'>> {
  return fc
    .record({
      keys: fc.array(columnOf(joins), { maxLength: 2 }),
      aggregates: fc.array(aggregateOf(joins), { minLength: 1, maxLength: 3 }),
      form: fc.constantFrom('position', 'alias', 'expression'),
      having: fc.option(fc.constantFrom(0, 1, 3), { nil: undefined }),
      ending: fc.constantFrom('', ',', ' order by a0 desc', ' order by 1', ' order by count(*), a0'),
    })
    .map(({ keys, aggregates, form, having, ending }) => {
      const columns = [
        ...keys.map(({ sql }, i) => `${sql} as k${i}`),
        ...aggregates.map(({ sql }, i) => `${sql} as a${i}`),
      ];
      const groupBy = keys.map(({ sql }, i) =>
        form === 'position' ? i + 1 : form === 'alias' ? `K${i}` : sql,
      );
      const hasComma = ending === ',';
      return {
        sql: [
          select(`${columns.join(', ')}${hasComma ? ',' : ''}`),
          groupBy.length === 0 ? '' : ` group by ${groupBy.join(', ')}`,
          having === undefined ? '' : ` having count(*) > ${having}`,
          hasComma ? '' : ending,
        ].join(''),
        isOrdered: false,
        rowsOf: logs => {
          const groups = new Map<string, LogRecord[]>(keys.length === 0 ? [['[]', []]] : []);
          for (const log of filter(logs)) {
            const key = JSON.stringify(keys.map(({ read }) => read(log)));
            groups.set(key, [...(groups.get(key) ?? []), log]);
          }
          return [...groups]
            .filter(([, group]) => having === undefined || group.length > having)
            .map(([key, group]) => ({
              ...Object.fromEntries((JSON.parse(key) as unknown[]).map((value, i) => [`k${i}`, value])),
              ...Object.fromEntries(aggregates.map(({ read }, i) => [`a${i}`, read(group)])),
            }));
        },
      };
    });
}
