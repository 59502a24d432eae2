// Validates and runs saved queries on ClickHouse. Parameters are written {name:Type} in the SQL; the server binds their
// values, which are never spliced into the SQL.

import { findParameterMismatch, type ParameterRules } from '../query-parameters.ts';
import { findColumnProblem } from '../results.ts';
import type {
  BoundValue,
  BoundValues,
  Cell,
  ColumnType,
  QueryOptions,
  QueryResult,
  SavedQuery,
} from '../store.ts';
import { findForbiddenFunction } from './allowed-sql.ts';
import { causeOf, codeOf, describeError, isTransient } from './errors.ts';
import type { Reader, ReaderParameters, ReaderQuery, ReaderResult } from './reader.ts';

const INTEGER = 'U?Int(8|16|32|64|128|256)';

/** The ClickHouse types that are valid for a declared column type. */
const ACCEPTED_TYPES: Record<ColumnType, RegExp> = {
  text: /^(String|FixedString.*|UUID|Enum.*)$/,
  json: /^String$/,
  integer: new RegExp(`^${INTEGER}$`),
  number: new RegExp(`^(${INTEGER}|Float(32|64)|Decimal.*)$`),
  unix_microseconds: /^Int64$/,
  utc_datetime: /^Int64$/,
};

/** The endpoints' SQL puts these flags before a pattern, so that it matches as it does in DuckDB. */
const PATTERN_FLAGS = '(?-is)';
const CANNOT_COMPILE_REGEXP = 427;

type RawCell = ReaderResult['rows'][number][number];
type CellConverter = (cell: NonNullable<RawCell>) => Cell;

/** Implements Store.validateQuery. Describes the query and does not run it. */
export async function validateSavedQuery(
  reader: Reader,
  query: SavedQuery,
  rules: ParameterRules,
): Promise<string | undefined> {
  const sql = withoutLiterals(query.sql).trim();
  if (sql === '') return 'holds no statement; one SELECT is allowed';
  if (!/^(select|with|\()/i.test(sql)) return 'is not a SELECT; one SELECT is allowed';
  const parameterProblem = findParameterMismatch(parameterNames(query.sql), rules, name => `{${name}}`);
  if (parameterProblem !== undefined) return parameterProblem;
  // ClickHouse accepts only one SELECT inside the parentheses and rejects anything else.
  // The SQL begins on the first line, so that ClickHouse's errors name the lines of the file.
  const inParentheses = `(${query.sql.trimEnd().replace(/;$/, '')}\n)`;
  const parameters = bind(query.sql, rules.sample);
  const describeQuery: ReaderQuery = { sql: `describe table ${inParentheses}`, parameters, purpose: 'check' };
  try {
    // Runs before DESCRIBE, because DESCRIBE contacts the servers of the query's table functions, such as remote().
    const forbidden = await findForbiddenFunction(reader, `select * from ${inParentheses}`, parameters);
    if (forbidden !== undefined) return forbidden;
    const { rows } = await reader.query(describeQuery);
    return findColumnProblem(
      query.columns,
      rows.map(([name, type]) => ({ name: String(name), type: bareType(String(type)) })),
      { patterns: ACCEPTED_TYPES, hint: hintFor },
    );
  } catch (error) {
    const cause = causeOf(error);
    if (codeOf(cause) === undefined || isTransient(cause)) throw error;
    return `ClickHouse rejects it: ${describeError(cause)}`;
  }
}

export async function runSavedQuery(
  reader: Reader,
  query: SavedQuery,
  values: BoundValues,
  options?: QueryOptions,
  purpose: ReaderQuery['purpose'] = 'query',
): Promise<QueryResult> {
  // One row more than is returned, to find out whether the result is truncated.
  const settings = { limit: String(query.maxRows + 1) };
  const { rows, exceedsMaxBytes, queuedMs, executedMs } = await reader.query(
    {
      sql: query.sql,
      parameters: bind(query.sql, values),
      settings,
      maxBytes: options?.maxBytes,
      purpose,
    },
    options,
  );
  const converters = query.columns.map(column => CELL_CONVERTERS[column.type]);
  const cells = rows
    .slice(0, query.maxRows)
    .map(row => row.map((cell, index) => toCell(cell, converters[index])));
  // If maxBytes was exceeded only by the row after maxRows, the row limit cut the result, not maxBytes.
  const hasMaxRows = rows.length >= query.maxRows;
  const truncated = rows.length > query.maxRows || (hasMaxRows && exceedsMaxBytes);
  return { rows: cells, truncated, exceedsMaxBytes: exceedsMaxBytes && !hasMaxRows, queuedMs, executedMs };
}

function hintFor(type: ColumnType): string {
  const isTime = type === 'unix_microseconds' || type === 'utc_datetime';
  return isTime ? '; return times as Int64, in Unix microseconds' : '';
}

/** The type without Nullable and LowCardinality. */
function bareType(type: string): string {
  const inner = /^(?:Nullable|LowCardinality)\((.*)\)$/.exec(type)?.[1];
  return inner === undefined ? type : bareType(inner);
}

/** The names in {name:Type}, except in string literals, quoted identifiers and comments. */
function parameterNames(sql: string): string[] {
  return [...new Set([...withoutLiterals(sql).matchAll(/\{\s*(\w+)\s*:/g)].map(([, name = '']) => name))];
}

/**
 * Removes comments, and empties string literals and quoted identifiers. All in one pass, because each of them can contain the marks
 * of the others.
 */
function withoutLiterals(sql: string): string {
  return sql.replace(
    /(['"`])(?:\\[\s\S]|(?!\1)[^\\])*\1|--.*$|\/\*[\s\S]*?\*\//gm,
    (_, quote: string | undefined) => (quote === undefined ? '' : quote + quote),
  );
}

function bind(sql: string, values: BoundValues): ReaderParameters {
  const bound: Record<string, ReaderParameters[string]> = {};
  for (const name of parameterNames(sql)) {
    const value = values[name];
    if (value === undefined) throw new Error(`no value for {${name}}`);
    bound[name] = toParameter(value);
  }
  return bound;
}

function toParameter({ value }: BoundValue): ReaderParameters[string] {
  if (typeof value === 'boolean') return Number(value); // 1 or 0: valid for {name:UInt8} and for {name:Bool}
  return typeof value === 'bigint' ? value.toString() : value;
}

function toCell(cell: RawCell, convert: CellConverter = String): Cell {
  return cell === null ? null : convert(cell);
}

/** An integer outside the safe integers of JavaScript becomes a bigint. NaN and infinity arrive as null. */
function toNumber(cell: NonNullable<RawCell>): Cell {
  if (typeof cell !== 'string') return Number(cell);
  const number = Number(cell);
  return /^-?\d+$/.test(cell) && !Number.isSafeInteger(number) ? BigInt(cell) : number;
}

function toMicros(cell: NonNullable<RawCell>): Cell {
  return BigInt(cell);
}

const CELL_CONVERTERS: Record<ColumnType, CellConverter> = {
  text: String,
  json: String,
  integer: toNumber,
  number: toNumber,
  unix_microseconds: toMicros,
  utc_datetime: toMicros,
};

/** Returns what is wrong with the pattern, in the words of RE2, or undefined. */
export async function validatePattern(
  reader: Reader,
  pattern: string,
  options?: QueryOptions,
): Promise<string | undefined> {
  const sql = `select match('', concat('${PATTERN_FLAGS}', {pattern:String}))`;
  try {
    await reader.query({ sql, parameters: { pattern }, purpose: 'pattern' }, options);
    return undefined;
  } catch (error) {
    if (codeOf(error) !== CANNOT_COMPILE_REGEXP) throw error;
    return toPatternProblem((error as Error).message);
  }
}

/** RE2's sentence from ClickHouse's error message, without the flags, which the caller did not write. */
function toPatternProblem(message: string): string {
  const prefix = ', error: ';
  const start = message.lastIndexOf(prefix);
  const end = message.indexOf('. Look at https', start);
  if (start === -1 || end === -1) return 'it cannot be compiled';
  return message.slice(start + prefix.length, end).replace(`: ${PATTERN_FLAGS}`, ': ');
}
