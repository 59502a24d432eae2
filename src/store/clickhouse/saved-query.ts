// A saved query on ClickHouse: checked, bound and read. Its parameters stand in the SQL as {name:Type} and are bound by the
// server, never spliced.
import { findColumnProblem } from '../column-types.ts';
import type { BoundValue, BoundValues, Cell, ColumnType, QueryResult, SavedQuery } from '../store.ts';
import { codeOf, describeError, isTransient } from './errors.ts';
import type { Reader, ReaderQuery, ReaderResult } from './reader.ts';

const INTEGER = 'U?Int(8|16|32|64|128|256)';

/** The types of ClickHouse that a declared column may have. */
const ACCEPTED_TYPES: Record<ColumnType, RegExp> = {
  text: /^(String|FixedString.*|UUID|Enum.*)$/,
  json: /^String$/,
  integer: new RegExp(`^${INTEGER}$`),
  number: new RegExp(`^(${INTEGER}|Float(32|64)|Decimal.*)$`),
  unix_microseconds: /^Int64$/,
  utc_datetime: /^Int64$/,
};

type RawCell = ReaderResult['rows'][number][number];

/** What is wrong with a saved query, in one sentence, or undefined. Nothing of its rows is read. */
export async function validateSavedQuery(
  reader: Reader,
  query: SavedQuery,
  sample: BoundValues,
): Promise<string | undefined> {
  const sql = withoutComments(query.sql).trim();
  if (sql === '') return 'holds no statement; one SELECT is allowed';
  if (!/^(select|with|\()/i.test(sql)) return 'is not a SELECT; one SELECT is allowed';
  const unknown = parameterNames(query.sql).find(name => sample[name] === undefined);
  if (unknown !== undefined)
    return `uses {${unknown}}, which is not declared; declared are ${Object.keys(sample)
      .map(name => `{${name}}`)
      .join(', ')}`;
  // In brackets nothing but a query can stand, so that one statement, and a SELECT, is what this lets through.
  const described: ReaderQuery = {
    sql: `describe table (\n${query.sql.trim().replace(/;$/, '')}\n)`,
    parameters: bind(query.sql, sample),
    purpose: 'check',
  };
  try {
    const { rows } = await reader.query(described);
    return findColumnProblem(
      query.columns,
      rows.map(([name, type]) => ({ name: String(name), type: bareType(String(type)) })),
      { patterns: ACCEPTED_TYPES, hint: hintFor },
    );
  } catch (error) {
    const said = codeOf(error) === undefined ? (error as Error).cause : error;
    if (codeOf(said) === undefined || isTransient(said)) throw error;
    return `is refused by ClickHouse: ${describeError(said)}`;
  }
}

export async function runSavedQuery(
  reader: Reader,
  query: SavedQuery,
  values: BoundValues,
  call?: Parameters<Reader['query']>[1],
): Promise<QueryResult> {
  // One row more than is kept, to know whether rows were cut.
  const settings = { limit: String(query.maxRows + 1) };
  const { rows, queuedMs, executedMs } = await reader.query(
    { sql: query.sql, parameters: bind(query.sql, values), settings, purpose: 'query' },
    call,
  );
  const read = query.columns.map(column => CELL_READERS[column.type]);
  const kept = rows.slice(0, query.maxRows).map(row => row.map((cell, i) => readCell(cell, read[i])));
  return { rows: kept, truncated: rows.length > query.maxRows, queuedMs, executedMs };
}

function hintFor(type: ColumnType): string {
  const isTime = type === 'unix_microseconds' || type === 'utc_datetime';
  return isTime ? '; return times as Int64, in Unix microseconds' : '';
}

function bareType(type: string): string {
  const inner = /^(?:Nullable|LowCardinality)\((.*)\)$/.exec(type)?.[1];
  return inner === undefined ? type : bareType(inner);
}

/** The names in {name:Type}, wherever they are not in a text or a comment. */
function parameterNames(sql: string): string[] {
  const bare = withoutComments(sql).replace(/'(?:[^'\\]|\\[\s\S]|'')*'/g, "''");
  return [...new Set([...bare.matchAll(/\{\s*(\w+)\s*:/g)].map(([, name = '']) => name))];
}

function withoutComments(sql: string): string {
  return sql.replace(/--.*$|\/\*[\s\S]*?\*\//gm, '');
}

function bind(sql: string, values: BoundValues): Record<string, string | number | null> {
  const bound: Record<string, string | number | null> = {};
  for (const name of parameterNames(sql)) {
    const value = values[name];
    if (value === undefined) throw new Error(`no value for {${name}}`);
    bound[name] = toParameter(value);
  }
  return bound;
}

function toParameter({ value }: BoundValue): string | number | null {
  return typeof value === 'bigint' ? value.toString() : value;
}

function readCell(cell: RawCell, read: ((cell: string | number | boolean) => Cell) | undefined): Cell {
  return cell === null ? null : (read ?? String)(cell);
}

/** A whole number too large for a double stays a bigint; what JSON cannot write came as null. */
function toNumber(cell: string | number | boolean): Cell {
  if (typeof cell !== 'string') return Number(cell);
  const number = Number(cell);
  return /^-?\d+$/.test(cell) && !Number.isSafeInteger(number) ? BigInt(cell) : number;
}

const toMicros = (cell: string | number | boolean): Cell => BigInt(cell);

const CELL_READERS: Record<ColumnType, (cell: string | number | boolean) => Cell> = {
  text: String,
  json: String,
  integer: toNumber,
  number: toNumber,
  unix_microseconds: toMicros,
  utc_datetime: toMicros,
};
