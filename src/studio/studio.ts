// Queries of Supabase Studio: the parameter `sql` of logs.all. The text is parsed, checked and compiled to a query of Dendro's own,
// and is never executed. Everything else about the request is as in any other request of logs.all.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Endpoint } from '../endpoint/catalog.ts';
import { findPatternExcess, isExpensivePattern, isPlainText } from '../endpoint/pattern-cost.ts';
import {
  type EndpointDependencies,
  type EndpointRun,
  findEnd,
  type QueryStore,
  type RunOptions,
  runEndpoint,
  toQueryOptions,
} from '../endpoint/run-endpoint.ts';
import type { QueryLimits } from '../store/query-queue.ts';
import type { BoundValues, Cell, Column, QueryResult } from '../store/store.ts';
import { checkQuery } from './check-query.ts';
import { SqlParser } from './parse-sql.ts';
import type { Query } from './query.ts';
import { type CompiledQuery, compileQuery } from './query-sql.ts';
import { refuse } from './syntax-error.ts';
import { wrapObjects } from './wrap-objects.ts';

/** The endpoint with the parameter `sql`. */
export const STUDIO_ENDPOINT = 'logs.all';

export class Studio {
  readonly #parser: SqlParser;

  constructor(limits: QueryLimits) {
    this.#parser = new SqlParser(limits);
  }

  /** `values` are those of the endpoint's own parameters. Throws as runEndpoint, and `invalid_parameter` for a query it does not know. */
  async run(
    dependencies: EndpointDependencies,
    endpoint: Endpoint,
    values: BoundValues,
    sql: string,
    options: RunOptions,
  ): Promise<EndpointRun> {
    const { store, timeLimitMs } = dependencies;
    const endsAt = findEnd(timeLimitMs);
    const own = { ...options, endsAt };
    const query = checkQuery(await this.#parser.parse(sql, toQueryOptions(endpoint.definition, own)));
    const compiled = compileQuery(query, store.name, endpoint.definition.max_rows);
    const ownStore = toOwnStore(store, query, compiled);
    return runCompiled({ ...dependencies, store: ownStore }, endpoint, values, query, compiled, own);
  }

  close(): Promise<void> {
    return this.#parser.close();
  }
}

async function runCompiled(
  dependencies: EndpointDependencies,
  endpoint: Endpoint,
  values: BoundValues,
  query: Query,
  compiled: CompiledQuery,
  options: RunOptions,
): Promise<EndpointRun> {
  const { definition } = endpoint;
  for (const { text, at } of query.patterns) {
    if (isPlainText(text)) continue;
    const problem = await dependencies.store.validatePattern(text, toQueryOptions(definition, options));
    if (problem !== undefined)
      throw refuse(`the regular expression is not valid (RE2 syntax): ${problem}`, at);
    // Messages and fields have up to 1 MiB: the states of the automaton must fit into RE2's memory.
    const excess =
      findPatternExcess(text) ??
      (isExpensivePattern(text) ? 'use fewer classes, wildcards, counts or alternatives' : undefined);
    if (excess !== undefined) throw refuse(`the regular expression is too expensive: ${excess}`, at);
  }
  const ownEndpoint: Endpoint = {
    ...endpoint,
    definition: { ...definition, reads: query.kind ?? definition.reads },
    query: { sql: compiled.sql, columns: toColumns(query, compiled), maxRows: definition.max_rows },
  };
  return runEndpoint(dependencies, ownEndpoint, { ...values, ...compiled.values }, options);
}

/** A store that runs one query of Studio, and returns its rows in BigQuery's form. */
function toOwnStore(
  store: QueryStore,
  { kind, outputs }: Query,
  { columns, requiredText }: CompiledQuery,
): QueryStore {
  const rewriters = outputs.map(({ value: { type } }) => {
    if (type === 'json') return (cell: NonNullable<Cell>) => wrapObjects(String(cell));
    return type === 'datetime' ? toDatetime : undefined;
  });
  return {
    name: store.name,
    validatePattern: (...args) => store.validatePattern(...args),
    newestTimestamp: async (...args) => (kind === undefined ? undefined : store.newestTimestamp(...args)),
    query: async (query, values, options) => {
      const result = await store.query({ ...query, columns }, values, { ...options, requiredText });
      return { ...result, rows: await rewrite(result.rows, rewriters) };
    },
  };
}

type Rewriter = (cell: NonNullable<Cell>) => Cell;

async function rewrite(
  rows: QueryResult['rows'],
  rewriters: readonly (Rewriter | undefined)[],
): Promise<Cell[][]> {
  const rewritten: Cell[][] = [];
  let characters = 0;
  for (const row of rows) {
    rewritten.push(row.map((cell, index) => (cell === null ? null : (rewriters[index]?.(cell) ?? cell))));
    for (const cell of row) characters += typeof cell === 'string' ? cell.length : 0;
    if (characters < CHUNK_CHARACTERS) continue;
    characters = 0;
    await yieldToEventLoop();
  }
  return rewritten;
}

/** Characters that are rewritten without a pause. */
const CHUNK_CHARACTERS = 128 * 1024;

function toDatetime(cell: NonNullable<Cell>): string {
  return formatTimestamp(BigInt(cell)).slice(0, -1);
}

function toColumns({ outputs }: Query, { columns }: CompiledQuery): Column[] {
  return columns.map((column, index) =>
    outputs[index]?.value.type === 'datetime' ? { ...column, type: 'text' } : column,
  );
}
