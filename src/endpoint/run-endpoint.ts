// Runs an endpoint for a validated request: returns the cached result, or runs the query. Knows no HTTP.
import type { CacheOutcome, CacheResult, ResultCache } from '../cache/result-cache.ts';
import type { Load } from '../cache/single-flight.ts';
import { DendroError, RefusedError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Observe } from '../observe/event.ts';
import { requiredTextOf } from '../store/required-text.ts';
import type { BoundValues, QueryOptions, Store } from '../store/store.ts';
import { type Clock, MICROS_PER_DAY } from '../system/clock.ts';
import { type Endpoint, fillQuery, listColumns } from './catalog.ts';
import { compareRecords } from './compare-records.ts';
import { type EndpointDefinition, hasPages, hasProject, selectKinds } from './definition.ts';
import { type ClippedReason, EndpointResult } from './endpoint-result.ts';
import { addContextValues, findReadRange, type RequestToken } from './parameters.ts';
import { findPatternExcess, isExpensivePattern, isPlainText } from './pattern-cost.ts';
import { createQueryKey } from './query-key.ts';
import { querySlices } from './query-slices.ts';

/** What running an endpoint needs of a store. */
export type QueryStore = Pick<Store, 'name' | 'query' | 'newestTimestamp' | 'validatePattern'>;

export interface EndpointDependencies {
  readonly store: QueryStore;
  readonly clock: Clock;
  /** Without a cache, every request runs its query. */
  readonly cache?: ResultCache<EndpointResult> | undefined;
  /** The limit of a result, before compression; undefined: no limit. */
  readonly maxResultBytes?: number | undefined;
  /**
   * For an endpoint with pages, which runs one query for each slice of its time range (query-slices.ts): the time limit
   * for all slices together. Undefined: only the store limits each query.
   */
  readonly timeLimitMs?: number | undefined;
  readonly observe?: Observe;
}

/** `requestId` is `warming` for a refresh in the background. */
interface LoadOptions extends QueryOptions {
  readonly requestId: string | undefined;
}

export interface RunOptions {
  /** Undefined: the request is one of Dendro's own, which may read all projects. */
  readonly token?: RequestToken | undefined;
  /** Runs the query even if its result is cached, but at most once in 10 s for each cache key (result-cache.ts). */
  readonly forceRefresh?: boolean;
  readonly request?: RequestContext | undefined;
  /** Nobody waits for the result: the query runs after all others. */
  readonly isBackground?: boolean;
  /** When all queries of the request have to end, as from performance.now(). The limit of the store for each query holds too. */
  readonly endsAt?: number | undefined;
  /**
   * Called before the query runs, or the request joins a running one. May throw to reject the request. `caller` is `sha256` of the
   * token, so that all requests can share one function.
   */
  readonly beforeLoad?: ((caller: string) => void) | undefined;
}

/** Both values may be getters that create the value: a cache hit without a forced refresh reads neither. */
export interface RequestContext {
  /** Identifies the request in logs. */
  readonly id: string;
  /** Aborts when the client disconnects before it has the response. */
  readonly signal: AbortSignal;
}

/** A result, and how it was obtained. Without a cache, the times are 0. */
export interface EndpointRun extends Omit<CacheResult<EndpointResult>, 'outcome'> {
  /** `bypass`: the endpoint is not cached, or there is no cache. */
  readonly outcome: CacheOutcome | 'bypass';
  /** The cache key of the result; undefined with the outcome `bypass`. */
  readonly key?: string;
}

/** The query of a request and everything that its result depends on. */
interface PreparedQuery {
  readonly endpoint: Endpoint;
  readonly values: BoundValues;
  /** The projects whose records the result may contain; undefined: any. */
  readonly pin: readonly string[] | undefined;
}

/** Returns the cached result, or runs the query. */
export async function runEndpoint(
  dependencies: EndpointDependencies,
  endpoint: Endpoint,
  values: BoundValues,
  options: RunOptions = {},
): Promise<EndpointRun> {
  const { definition } = endpoint;
  const { token, forceRefresh = false, request, beforeLoad } = options;
  const { projects, sha256: caller = '' } = token ?? {};
  const pin = projects === undefined ? undefined : findPin(definition, values, projects);
  if (pin?.length === 0) return rejectProject(dependencies, definition, values, options);
  const prepared: PreparedQuery = { endpoint, values, pin };
  const { cache } = dependencies;
  if (definition.cache === 'none' || cache === undefined) {
    beforeLoad?.(caller);
    return runUncached(dependencies, prepared, options);
  }
  const key = createQueryKey(definition, values, pin);
  const cached = forceRefresh ? undefined : cache.getCached(key);
  if (cached !== undefined) return { ...cached, key };
  beforeLoad?.(caller);
  const { lifetime_seconds, warming_seconds } = definition.cache;
  const lifetime = { lifetimeMs: lifetime_seconds * 1000, refreshAfterMs: warming_seconds * 1000 };
  const load = createLoad(dependencies, prepared, request);
  const getOptions = { forceRefresh, caller, signal: request?.signal };
  return { ...(await cache.get({ key, lifetime, load }, getOptions)), key };
}

/**
 * The requested project, or all projects of the token if the endpoint has no parameter `project`. An empty list if the token is
 * not pinned to the requested project.
 */
export function findPin(
  definition: EndpointDefinition,
  values: BoundValues,
  projects: readonly string[],
): readonly string[] {
  if (!hasProject(definition)) return [...new Set(projects)].sort();
  return projects.filter(project => project === values['project']?.value).slice(0, 1);
}

/** The cache entry keeps the returned function for its refreshes, so the function drops its reference to the request. */
function createLoad(
  dependencies: EndpointDependencies,
  prepared: PreparedQuery,
  request: RequestContext | undefined,
): Load<EndpointResult> {
  const { definition } = prepared.endpoint;
  let firstRequest = request;
  return (signal, callers) => {
    const requestId = callers.ids.size === 0 ? 'warming' : firstRequest?.id;
    firstRequest = undefined;
    const label = createLabel(definition, requestId);
    return loadResult(dependencies, prepared, { signal, callers, label, requestId });
  };
}

/** The text that identifies a query in the store's own log. */
function createLabel({ name }: EndpointDefinition, requestId: string | undefined): string {
  return requestId === undefined ? name : `${name} ${requestId}`;
}

export function toQueryOptions(
  definition: EndpointDefinition,
  {
    request,
    token,
    isBackground = false,
    endsAt,
  }: Pick<RunOptions, 'request' | 'token' | 'isBackground' | 'endsAt'>,
): LoadOptions {
  const requestId = request?.id;
  const label = createLabel(definition, requestId);
  return {
    signal: request?.signal,
    callers: { ids: new Set(isBackground ? [] : [token?.sha256 ?? '']) },
    label,
    requestId,
    endsAt,
  };
}

async function runUncached(
  dependencies: EndpointDependencies,
  prepared: PreparedQuery,
  options: RunOptions,
): Promise<EndpointRun> {
  const queryOptions = toQueryOptions(prepared.endpoint.definition, options);
  const value = await loadResult(dependencies, prepared, queryOptions);
  return { value, outcome: 'bypass', ageMs: 0, freshForMs: 0, expiresInMs: 0 };
}

/** Throws `forbidden`: with a pinned token, `project` must equal one of its projects. */
export async function rejectProject(
  { store }: EndpointDependencies,
  definition: EndpointDefinition,
  values: BoundValues,
  options: Pick<RunOptions, 'request' | 'token'>,
): Promise<never> {
  // Parameters are checked before the pin, so an invalid pattern is reported as `invalid_parameter` here too.
  await checkPatterns(store, definition, values, toQueryOptions(definition, options));
  throw new RefusedError(
    'forbidden',
    'the token is pinned to projects: project must be the exact name of one of them',
    { reason: 'project_not_allowed', tokenName: options.token?.name, param: 'project' },
  );
}

/** When a request that starts now has to end. */
export function findEnd(timeLimitMs = Number.POSITIVE_INFINITY): number {
  return performance.now() + timeLimitMs;
}

async function loadResult(
  { store, clock, maxResultBytes, timeLimitMs, observe }: EndpointDependencies,
  { endpoint, values, pin }: PreparedQuery,
  { requestId, ...options }: LoadOptions,
): Promise<EndpointResult> {
  const { definition } = endpoint;
  const { query, search, values: filled } = fillQuery(definition, endpoint.query, values, store.name);
  const now = clock();
  const isExpensive = await checkPatterns(store, definition, values, options);
  // Read before the query runs, so that the query sees the record with this timestamp.
  const newest = await findNewest(store, definition, values, now, pin, options);
  const bound = addContextValues(definition, filled, now, pin);
  const queryOptions = {
    ...options,
    isExpensive,
    maxBytes: maxResultBytes,
    range: findReadRange(definition, values, now),
    requiredText: search && filtersBySearch(definition) ? requiredTextOf(search) : undefined,
  };
  const page = hasPages(definition)
    ? await querySlices(
        { store, definition, query, values: bound, newest },
        { ...queryOptions, endsAt: findEnd(timeLimitMs) },
      )
    : undefined;
  const stored = page?.result ?? (await store.query(query, bound, queryOptions));
  const queryResult = definition.compares
    ? await compareRecords(stored, search, definition.max_rows)
    : stored;
  const { queuedMs, executedMs, rows } = queryResult;
  observe?.({
    type: 'query_completed',
    endpoint: definition.name,
    id: requestId,
    queuedMs,
    executedMs,
    rows: rows.length,
  });
  const clipped: ClippedReason[] = [];
  if (queryResult.truncated && page === undefined) clipped.push('row-limit');
  if (queryResult.exceedsMaxBytes) clipped.push('byte-limit');
  if (page?.isTimeUp) clipped.push('time-limit');
  if (startsBeforeRetention(definition, values, now)) clipped.push('retention');
  const { missingParts = 0 } = queryResult;
  if (missingParts > 0) observe?.({ type: 'result_incomplete', endpoint: definition.name, missingParts });
  const dataThrough = newest === undefined ? undefined : formatTimestamp(newest);
  const resultOptions = { maxBytes: maxResultBytes, cursorAfter: page?.cursorAfter };
  return new EndpointResult(
    definition.compares ? listColumns(definition) : query.columns,
    queryResult,
    { dataThrough, clipped, missingParts },
    resultOptions,
  );
}

/**
 * The timestamp of the newest record, at or before now, of the log kinds that the request reads. With a pinned token, only
 * records of the projects in `pin` count. Undefined if there is none.
 */
async function findNewest(
  store: QueryStore,
  definition: EndpointDefinition,
  values: BoundValues,
  now: bigint,
  pin: readonly string[] | undefined,
  options: QueryOptions,
): Promise<bigint | undefined> {
  let newest: bigint | undefined;
  for (const kind of selectKinds(definition, values))
    for (const project of pin ?? [undefined]) {
      const found = await store.newestTimestamp(kind, now, project, options);
      if (found !== undefined && (newest === undefined || found > newest)) newest = found;
    }
  return newest;
}

function filtersBySearch({ parameters }: EndpointDefinition): boolean {
  return Object.values(parameters).some(parameter => parameter.type === 'search' && parameter.filters);
}

function startsBeforeRetention(definition: EndpointDefinition, values: BoundValues, now: bigint): boolean {
  const start = values[definition.range?.start ?? ''];
  const days = values[definition.range?.days ?? ''];
  if (start?.type !== 'timestamp' || days?.type !== 'integer') return false;
  return (
    start.value !== null && days.value !== null && start.value < now - BigInt(days.value) * MICROS_PER_DAY
  );
}

/**
 * Lets the engine that runs the query validate the patterns, so a pattern that passes here cannot fail in the query. Rejects
 * patterns that could keep the engine busy for a long time. Returns whether a pattern is expensive (`QueryOptions.isExpensive`).
 */
export async function checkPatterns(
  store: QueryStore,
  definition: EndpointDefinition,
  values: BoundValues,
  options: QueryOptions,
): Promise<boolean> {
  let isExpensive = false;
  for (const [name, { type }] of Object.entries(definition.parameters)) {
    const pattern = values[name]?.value;
    if (type !== 'pattern' || typeof pattern !== 'string' || isPlainText(pattern)) continue;
    const problem = await store.validatePattern(pattern, options);
    if (problem !== undefined)
      throw invalidPattern(name, `is not a valid regular expression (RE2 syntax): ${problem}`);
    const excess = findPatternExcess(pattern);
    if (excess !== undefined)
      throw invalidPattern(name, `is too expensive as a regular expression: ${excess}`);
    isExpensive ||= isExpensivePattern(pattern);
  }
  return isExpensive;
}

function invalidPattern(name: string, problem: string): DendroError {
  return new DendroError('invalid_parameter', `${name} ${problem}`, { param: name });
}
