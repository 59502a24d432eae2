// The SQL of everything that a query of Studio can compute, for both stores.
import type { Dialect } from '../store/log-sql.ts';
import type { BoundValue, StoreName } from '../store/store.ts';
import type { Type } from './query.ts';

/** Where the SQL of the stores differs. The dialects of searches (store/log-sql.ts) have the rest. */
interface StudioDialect {
  bound(name: string, type: BoundValue['type']): string;
  /** The records that the request may read. */
  readonly inRange: string;
  readonly nulls: Readonly<Record<Type, string>>;
  isIn(value: string, others: string): string;
  contains(text: string, part: string): string;
  startsWith(text: string, part: string): string;
  endsWith(text: string, part: string): string;
  /** A dot does not match a line break, and case matters. */
  matches(text: string, pattern: string): string;
  /** In ClickHouse ASCII letters only, because not every ClickHouse knows others. */
  lower(text: string): string;
  upper(text: string): string;
  /** To the next whole number; a half away from zero. */
  round(number: string): string;
  toText(condition: string): string;
  toJson(text: string): string;
  truncate(timestamp: string, micros: string): string;
  /** So that an aggregate of no values is null. */
  nullable(value: string): string;
}

function nullsOf(cast: (type: string) => string, [text, number, boolean, timestamp]: readonly string[]) {
  const [aText, aNumber, aTime] = [cast(`${text}`), cast(`${number}`), cast(`${timestamp}`)];
  return {
    ...{ text: aText, json: aText, null: aText, number: aNumber, integer: aNumber },
    ...{ boolean: cast(`${boolean}`), timestamp: aTime, datetime: aTime },
  };
}

export const STUDIO_DIALECTS: Readonly<Record<StoreName, StudioDialect>> = {
  duckdb: {
    bound: name => `$${name}`,
    inRange:
      'project = $project and timestamp > $range_start and ($iso_timestamp_end is null or timestamp <= $iso_timestamp_end)',
    nulls: nullsOf(type => `null::${type}`, ['varchar', 'double', 'boolean', 'timestamp']),
    isIn: (value, others) => `(${value} in (${others}))`,
    contains: (text, part) => `contains(${text}, ${part})`,
    startsWith: (text, part) => `starts_with(${text}, ${part})`,
    endsWith: (text, part) => `ends_with(${text}, ${part})`,
    matches: (text, pattern) => `regexp_matches(${text}, ${pattern})`,
    lower: text => `lower(${text})`,
    upper: text => `upper(${text})`,
    round: number => `round(${number})`,
    toText: condition => `(${condition})::varchar`,
    toJson: text => `to_json(${text})::varchar`,
    truncate: (timestamp, micros) => `make_timestamp(epoch_us(${timestamp}) // ${micros} * ${micros})`,
    nullable: value => value,
  },
  clickhouse: {
    bound: (name, type) => `{${name}:${type === 'text' ? 'String' : 'Int64'}}`,
    inRange:
      'project = {project:String} and timestamp > {range_start:Int64} and timestamp <= ifNull({iso_timestamp_end:Nullable(Int64)}, toInt64(9223372036854775807))',
    nulls: nullsOf(type => `cast(null as Nullable(${type}))`, ['String', 'Float64', 'UInt8', 'Int64']),
    // IN takes null for false.
    isIn: (value, others) => `if(isNull(${value}), null, ${value} in (${others}))`,
    contains: (text, part) => `(position(${text}, ${part}) > 0)`,
    startsWith: (text, part) => `startsWith(${text}, ${part})`,
    endsWith: (text, part) => `endsWith(${text}, ${part})`,
    matches: (text, pattern) => `match(${text}, concat('(?-is)', ${pattern}))`,
    lower: text => `lower(${text})`,
    upper: text => `upper(${text})`,
    round: number => `case when ${number} < 0 then -floor(0.5 - ${number}) else floor(${number} + 0.5) end`,
    toJson: text => `toJSONString(${text})`,
    toText: condition => `case when ${condition} then 'true' when not ${condition} then 'false' end`,
    truncate: (timestamp, micros) => `(intDiv(${timestamp}, ${micros}) * ${micros})`,
    nullable: value => `toNullable(${value})`,
  },
};

type Args = readonly string[];
const infix = (operator: string) => (args: Args) => `(${args.join(` ${operator} `)})`;

/** Arguments and results are SQL. Null has three-valued logic, as in both stores and in BigQuery. */
export function operationsOf(own: StudioDialect, dialect: Dialect) {
  const aggregate = (name: string) => (args: Args) => `${name}(${own.nullable(`${args[0]}`)})`;
  return {
    and: infix('and'),
    or: infix('or'),
    not: ([value]: Args) => `(not ${value})`,
    '=': infix('='),
    '!=': infix('!='),
    '<': infix('<'),
    '<=': infix('<='),
    '>': infix('>'),
    '>=': infix('>='),
    between: ([value, low, high]: Args) => `(${value} between ${low} and ${high})`,
    /** A value, and bound values of its type. */
    in: ([value = '', ...others]: Args) => own.isIn(value, others.join(', ')),
    'is null': ([value]: Args) => `(${value} is null)`,
    true: () => '(1 = 1)',
    false: () => '(1 = 0)',
    null: (_: Args, type: Type) => own.nulls[type],
    contains: ([text = '', part = '']: Args) => own.contains(text, part),
    'starts with': ([text = '', part = '']: Args) => own.startsWith(text, part),
    'ends with': ([text = '', part = '']: Args) => own.endsWith(text, part),
    matches: ([text = '', pattern = '']: Args) => own.matches(text, pattern),
    /** Conditions and values in turns, then the value if no condition is true. */
    case: (args: Args) =>
      `case ${args.map((arg, i) => (i === args.length - 1 ? `else ${arg} end` : i % 2 === 0 ? `when ${arg}` : `then ${arg}`)).join(' ')}`,
    coalesce: (args: Args) => `coalesce(${args.join(', ')})`,
    lower: ([text = '']: Args) => own.lower(text),
    upper: ([text = '']: Args) => own.upper(text),
    /** A timestamp, and a number of microseconds. */
    truncate: ([timestamp = '', micros = '']: Args) => own.truncate(timestamp, micros),
    /** The text of a JSON string, number or boolean. */
    scalar: ([json = '']: Args) => dialect.scalar(json),
    /** The number in a text or in JSON. */
    'to number': ([text = '']: Args) => dialect.toNumber(text),
    round: ([number = '']: Args) => own.round(number),
    'number to text': ([number = '']: Args) => dialect.toText(number),
    'boolean to text': ([value = '']: Args) => own.toText(value),
    'text to json': ([text = '']: Args) => `nullif(${own.toJson(text)}, 'null')`,
    count: ([value = '*']: Args) => `count(${value})`,
    'count distinct': ([value]: Args) => `count(distinct ${value})`,
    sum: aggregate('sum'),
    avg: aggregate('avg'),
    min: aggregate('min'),
    max: aggregate('max'),
  } satisfies Record<string, (args: Args, type: Type) => string>;
}

export type Operation = keyof ReturnType<typeof operationsOf>;

/** How often ClickHouse's SQL of an operation has the first argument; it computes equal parts once. DuckDB's has every argument once. */
export const REPEATS: Partial<Record<Operation, number>> = {
  ...{ between: 2, in: 2, scalar: 4, round: 3, 'boolean to text': 2 },
};
