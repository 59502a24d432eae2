// Validates and runs a saved query on one connection. Values are bound by name, never spliced into the SQL.
import { DendroError } from '../../domain/errors.ts';
import { findParameterMismatch, type ParameterRules } from '../query-parameters.ts';
import { countCharacters, findColumnProblem } from '../results.ts';
import type { BoundValue, BoundValues, Cell, ColumnType, QueryResult, SavedQuery } from '../store.ts';
import {
  findForbiddenFunction,
  findForbiddenLike,
  findForbiddenTable,
  parseReferences,
} from './allowed-sql.ts';
import type { QueryConnection } from './connection-pool.ts';
import {
  BIGINT,
  BOOLEAN,
  type DuckDBConnection,
  type DuckDBDataChunk,
  DuckDBDecimalValue,
  type DuckDBPreparedStatement,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  type DuckDBType,
  type DuckDBValue,
  LIST,
  listValue,
  ResultReturnType,
  StatementType,
  TIMESTAMP,
  VARCHAR,
} from './driver.ts';

/** The DuckDB types that are valid for a declared column type. */
const ACCEPTED_TYPES: Record<ColumnType, RegExp> = {
  text: /^(VARCHAR|UUID|ENUM.*)$/,
  json: /^JSON$/,
  integer: /^U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT)$/,
  number: /^(DOUBLE|FLOAT|DECIMAL.*|U?(TINYINT|SMALLINT|INTEGER|BIGINT|HUGEINT))$/,
  unix_microseconds: /^TIMESTAMP( WITH TIME ZONE)?$/,
  utc_datetime: /^TIMESTAMP( WITH TIME ZONE)?$/,
};

/**
 * A parameter of conditions on memtables. Its value is null, and its type is known only from the value, so that DuckDB plans the query
 * when it runs. A plan has statistics of its tables, such as the lengths of texts, and returns wrong rows if a memtable has grown
 * since. No parameter of an endpoint begins with an underscore.
 */
export const PLANNED_WHEN_RUN = '_planned_when_run';

/** Implements Store.validateQuery. Plans the query and does not run it. `sqlWithTables`: with its tables (queries.ts). */
export async function validateSavedQuery(
  connection: DuckDBConnection,
  query: SavedQuery,
  sqlWithTables: string,
  rules: ParameterRules,
): Promise<string | undefined> {
  try {
    // For text that has no statement, the error of extractStatements does not say what is wrong.
    if (query.sql.replace(/--.*$|\/\*[\s\S]*?\*\//gm, '').trim() === '')
      return 'holds no statement; one SELECT is allowed';
    const statements = await connection.extractStatements(query.sql);
    if (statements.count !== 1) return `holds ${statements.count} statements; one SELECT is allowed`;
    const references = await parseReferences(connection, query.sql);
    if (references === undefined || references.hasShow) return 'is not a SELECT; one SELECT is allowed';
    const forbidden =
      findForbiddenFunction(references) ?? findForbiddenLike(references) ?? findForbiddenTable(references);
    if (forbidden !== undefined) return forbidden;
    const statement = await connection.prepare(sqlWithTables);
    if (statement.statementType !== StatementType.SELECT) return 'is not a SELECT; one SELECT is allowed';
    const endpointParameters = parameterNames(statement).filter(name => name !== PLANNED_WHEN_RUN);
    const parameterProblem = findParameterMismatch(endpointParameters, rules, name => `$${name}`);
    if (parameterProblem !== undefined) return parameterProblem;
    const describe = await connection.prepare(`describe ${sqlWithTables}`);
    bind(describe, rules.sample);
    const rows = (await describe.runAndReadAll()).getRows();
    return findColumnProblem(
      query.columns,
      rows.map(([name, type]) => ({ name: String(name), type: String(type) })),
      { patterns: ACCEPTED_TYPES },
    );
  } catch (error) {
    const { message } = error as Error;
    const [problem = ''] = message.split('\n');
    // The tables of every query have a named parameter, with which DuckDB accepts no positional ones.
    if (/Mixing named and positional parameters/.test(message)) return 'uses $1, which is not declared';
    const line = /^LINE (\d+):/m.exec(message)?.[1];
    return `DuckDB rejects it${line === undefined ? '' : ` at line ${line}`}: ${problem}`;
  }
}

/** Implements Store.validatePattern. */
export async function findPatternProblem(
  queryConnection: QueryConnection,
  pattern: string,
): Promise<string | undefined> {
  const statement = await queryConnection.prepare("select system.main.regexp_matches('', $pattern)");
  statement.bind({ pattern });
  try {
    await statement.run();
    return undefined;
  } catch (error) {
    const problem = /^Invalid Input Error: (.*)/.exec((error as Error).message)?.[1];
    if (problem === undefined) throw error;
    return problem;
  }
}

/**
 * Reads up to one row more than it returns, to find out whether there are more. Compares `maxBytes` with the number of
 * characters, a lower bound for the bytes. Throws if the statement is not a SELECT.
 */
export async function runSavedQuery(
  queryConnection: QueryConnection,
  query: SavedQuery,
  values: BoundValues,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<Pick<QueryResult, 'rows' | 'truncated' | 'exceedsMaxBytes'>> {
  const statement = await queryConnection.prepare(query.sql);
  if (statement.statementType !== StatementType.SELECT) throw new Error('only a SELECT can be run');
  bind(statement, values);
  const result = await statement.stream();
  const rows: Cell[][] = [];
  let characters = 0;
  for (let chunk = await result.fetchChunk(); chunk?.rowCount; chunk = await result.fetchChunk()) {
    const readRow = createRowReader(chunk, query.columns);
    for (let index = 0; index < chunk.rowCount; index++) {
      const truncated = rows.length === query.maxRows;
      const row = truncated ? [] : readRow(index);
      characters += countCharacters(row);
      if (truncated || characters > maxBytes) {
        await queryConnection.endResult();
        return { rows, truncated, exceedsMaxBytes: !truncated };
      }
      rows.push(row);
    }
  }
  // A stream that fails ends like a complete one, and only its type shows the failure. Running the query as a whole throws the error.
  if (result.returnType === ResultReturnType.INVALID) {
    await statement.run();
    throw new DendroError('unavailable', 'the query failed after its first rows; retry in a moment');
  }
  return { rows, truncated: false, exceedsMaxBytes: false };
}

/** Converts one row at a time: a chunk can have 2,048 rows, and the texts of rows after a limit would only take memory. */
function createRowReader(chunk: DuckDBDataChunk, columns: SavedQuery['columns']): (index: number) => Cell[] {
  const columnReaders = Array.from({ length: chunk.columnCount }, (_, column) => ({
    vector: chunk.getColumnVector(column),
    convert: CELL_CONVERTERS[columns[column]?.type ?? 'text'],
  }));
  return index =>
    columnReaders.map(({ vector, convert }) => {
      const value = vector.getItem(index);
      return value === null ? null : convert(value);
    });
}

function parameterNames(statement: DuckDBPreparedStatement): string[] {
  return Array.from({ length: statement.parameterCount }, (_, index) => statement.parameterName(index + 1));
}

function bind(statement: DuckDBPreparedStatement, values: BoundValues): void {
  for (const [index, name] of parameterNames(statement).entries()) {
    const bound = name === PLANNED_WHEN_RUN ? { type: 'text' as const, value: null } : values[name];
    if (bound === undefined) throw new Error(`no value for $${name}`);
    statement.bindValue(index + 1, toDuckDBValue(bound), DUCKDB_TYPES[bound.type]);
  }
}

const DUCKDB_TYPES: Record<BoundValue['type'], DuckDBType> = {
  text: VARCHAR,
  texts: LIST(VARCHAR),
  integer: BIGINT,
  boolean: BOOLEAN,
  timestamp: TIMESTAMP,
};

function toDuckDBValue(bound: BoundValue): DuckDBValue {
  if (bound.value === null) return null;
  if (bound.type === 'timestamp') return new DuckDBTimestampValue(bound.value);
  if (bound.type === 'texts') return listValue(bound.value);
  return bound.type === 'integer' ? BigInt(bound.value) : bound.value;
}

function toMicros(value: DuckDBValue): Cell {
  return value instanceof DuckDBTimestampValue || value instanceof DuckDBTimestampTZValue
    ? value.micros
    : null;
}

/** A bigint outside the safe integers of JavaScript stays a bigint. NaN and infinity, which JSON does not have, become null. */
function toNumber(value: DuckDBValue): Cell {
  if (typeof value === 'bigint') return Number.isSafeInteger(Number(value)) ? Number(value) : value;
  const number = value instanceof DuckDBDecimalValue ? value.toDouble() : Number(value);
  return Number.isFinite(number) ? number : null;
}

const CELL_CONVERTERS: Record<ColumnType, (value: DuckDBValue) => Cell> = {
  text: String,
  json: String,
  integer: toNumber,
  number: toNumber,
  unix_microseconds: toMicros,
  utc_datetime: toMicros,
};
