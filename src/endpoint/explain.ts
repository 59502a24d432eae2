// Explains the result of an endpoint: how many records remain after each condition of its query. The explain SQL in the
// endpoint's folder counts them. An explanation is never cached.
import { DendroError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { BoundValue, BoundValues, Cell, SavedQuery } from '../store/store.ts';
import { type Endpoint, selectQueries } from './catalog.ts';
import { type EndpointDefinition, EXPLAIN_TIMES } from './definition.ts';
import { summarize } from './explain-summary.ts';
import { addContextValues } from './parameters.ts';
import {
  checkPatterns,
  type EndpointDependencies,
  findPin,
  type RunOptions,
  rejectProject,
  toQueryOptions,
} from './run-endpoint.ts';
import type { ValidatedRequest } from './validated-requests.ts';

export interface Explanation {
  /**
   * The values that the query uses for the declared parameters, after defaults, fallbacks and the token's maximum tier; null: the
   * parameter has no value.
   */
  readonly parameters: Readonly<Record<string, string | null>>;
  /** The time window of the query, ISO 8601; null: no bound. */
  readonly window: { readonly start: string | null; readonly end: string | null };
  /**
   * The timestamp of the newest record of the project, inside or outside the window, ISO 8601; of all projects if the query has no
   * condition on the project. null: there is none.
   */
  readonly newest: string | null;
  /** Like `newest`, but of the oldest record. */
  readonly oldest: string | null;
  /** The conditions that apply to the request, in the order of the query. */
  readonly conditions: readonly Condition[];
  /** One sentence. */
  readonly summary: string;
}

export interface Condition {
  readonly name: string;
  /** How many records meet this condition and all before it. */
  readonly remaining: number;
}

/** The values of the explain SQL's one row. */
export interface RecordCounts {
  readonly windowStart: bigint | null;
  readonly windowEnd: bigint | null;
  readonly newest: bigint | null;
  readonly oldest: bigint | null;
  readonly conditions: readonly Condition[];
}

/** Throws `not_found` if the endpoint has no explain SQL for the store. */
export function requireExplainQuery({ explainQuery, definition }: Endpoint): SavedQuery {
  if (explainQuery === undefined)
    throw new DendroError(
      'not_found',
      `the endpoint ${definition.name} has no explanation: its folder has no explain SQL for this store`,
    );
  return explainQuery;
}

/** Throws as `requireExplainQuery` and `runEndpoint` do. */
export async function explainEndpoint(
  dependencies: EndpointDependencies,
  endpoint: Endpoint,
  { values }: ValidatedRequest,
  { projects, tokenName, request }: Pick<RunOptions, 'projects' | 'tokenName' | 'request'> = {},
): Promise<Explanation> {
  const { definition, explainFile } = endpoint;
  const { store, clock, observe } = dependencies;
  requireExplainQuery(endpoint); // first: an endpoint without explain SQL is always not_found
  const pin = projects === undefined ? undefined : findPin(definition, values, projects);
  if (pin?.length === 0) return rejectProject(dependencies, definition, values, { request, tokenName });
  const { requestId, ...options } = toQueryOptions(definition, request);
  await checkPatterns(store, definition, values, options);
  // The query of the log kind that the request selects.
  const query = requireExplainQuery({ ...endpoint, ...selectQueries(endpoint, values) });
  const bound = addContextValues(definition, values, clock(), pin);
  const { rows, truncated, queuedMs, executedMs } = await store.query(query, bound, options);
  const timing = { queuedMs, executedMs, rows: rows.length };
  observe?.({ type: 'query_completed', endpoint: definition.name, id: requestId, ...timing });
  const [row] = rows;
  if (row === undefined || truncated) throw new Error(`${explainFile} did not return exactly one row`);
  const counts = readCounts(definition, row);
  return {
    parameters: describeParameters(definition, values),
    window: { start: toIso(counts.windowStart), end: toIso(counts.windowEnd) },
    newest: toIso(counts.newest),
    oldest: toIso(counts.oldest),
    conditions: counts.conditions,
    summary: summarize(definition, values, counts),
  };
}

function readCounts({ explain: names = [] }: EndpointDefinition, row: readonly Cell[]): RecordCounts {
  const [windowStart, windowEnd, newest, oldest] = EXPLAIN_TIMES.map((_, index) => toMicros(row[index]));
  const conditions = names.flatMap((name, index) => {
    const remaining = row[EXPLAIN_TIMES.length + index];
    // null: the condition does not apply to this request
    return remaining === null || remaining === undefined ? [] : [{ name, remaining: Number(remaining) }];
  });
  return {
    windowStart: windowStart ?? null,
    windowEnd: windowEnd ?? null,
    newest: newest ?? null,
    oldest: oldest ?? null,
    conditions,
  };
}

function describeParameters(
  { parameters }: EndpointDefinition,
  values: BoundValues,
): Explanation['parameters'] {
  return Object.fromEntries(Object.keys(parameters).map(name => [name, describeValue(values[name])]));
}

function describeValue(bound: BoundValue | undefined): string | null {
  const value = bound?.value ?? null;
  return typeof value === 'bigint' ? formatTimestamp(value) : (value?.toString() ?? null);
}

function toMicros(cell: Cell | undefined): bigint | null {
  return cell === null || cell === undefined ? null : BigInt(cell);
}

function toIso(micros: bigint | null): string | null {
  return micros === null ? null : formatTimestamp(micros);
}
