// Runs an endpoint for a validated request: returns the cached result, or runs the query. Knows no HTTP.
import { createCacheKey } from '../cache/cache-key.ts';
import type { CacheOutcome, CacheResult, GetOptions, ResultCache } from '../cache/result-cache.ts';
import type { Load } from '../cache/single-flight.ts';
import { DendroError, RefusedError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Observe } from '../observe/event.ts';
import type { BoundValues, QueryOptions, Store } from '../store/store.ts';
import { type Clock, MICROS_PER_DAY } from '../system/clock.ts';
import { type Endpoint, selectQueries } from './catalog.ts';
import { boundRangeOf, type EndpointDefinition, hasProject, selectKinds } from './definition.ts';
import { type ClippedReason, EndpointResult } from './endpoint-result.ts';
import { addContextValues, findTimeRange } from './parameters.ts';
import { findPatternExcess } from './pattern-cost.ts';
import { querySlices } from './query-slices.ts';
import type { ValidatedRequest } from './validated-requests.ts';

export interface EndpointDependencies {
  readonly store: Store;
  readonly clock: Clock;
  /** Without a cache, every request runs its query. */
  readonly cache?: ResultCache<EndpointResult> | undefined;
  /** The limit of a result, before compression; undefined: no limit. */
  readonly maxResultBytes?: number | undefined;
  /**
   * For an endpoint with `partial: true`, which runs one query for each slice of its time range (query-slices.ts): the time limit
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
  /** The projects that the token is pinned to; undefined: any project. */
  readonly projects?: readonly string[] | undefined;
  /** The name of the token, for the log line if the request is refused because the token is pinned to other projects. */
  readonly tokenName?: string | undefined;
  /** Runs the query even if its result is cached, but at most once in 10 s for each cache key (result-cache.ts). */
  readonly forceRefresh?: boolean;
  readonly request?: RequestContext | undefined;
  /** Identifies the token of the request. Passed to `beforeLoad`, so that all requests can share one function. */
  readonly caller?: string;
  /** Called before the query runs, or the request joins a running one. May throw to reject the request. */
  readonly beforeLoad?: ((caller: string) => void) | undefined;
}

/** Both values may be getters that create the value: a cache hit reads neither. */
export interface RequestContext {
  /** Identifies the request in logs. */
  readonly id: string;
  /** Aborts when the client disconnects before it has the response. */
  readonly signal: AbortSignal;
}

/** A result, and how it was obtained. */
export interface EndpointRun {
  readonly result: EndpointResult;
  /** `bypass`: the endpoint is not cached, or there is no cache. */
  readonly outcome: CacheOutcome | 'bypass';
  readonly ageMs: number;
  /** How long the cache will return the same result; 0 if the result is not cached. */
  readonly freshForMs: number;
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
  { values }: ValidatedRequest,
  options: RunOptions = {},
): Promise<EndpointRun> {
  const { definition } = endpoint;
  const { projects, forceRefresh = false, request, caller = '', beforeLoad } = options;
  const pin = projects === undefined ? undefined : findPin(definition, values, projects);
  if (pin?.length === 0) return rejectProject(dependencies, definition, values, options);
  const prepared: PreparedQuery = { endpoint, values, pin };
  const { cache } = dependencies;
  if (definition.cache === 'none' || cache === undefined) {
    beforeLoad?.(caller);
    return runUncached(dependencies, prepared, request);
  }
  const key = createKey(prepared);
  const cached = forceRefresh ? undefined : cache.getCached(key);
  if (cached !== undefined) return toRun(key, cached);
  beforeLoad?.(caller);
  const { lifetime_seconds, warming_seconds } = definition.cache;
  const lifetime = { lifetimeMs: lifetime_seconds * 1000, refreshAfterMs: warming_seconds * 1000 };
  const load = createLoad(dependencies, prepared, request, () => cache.updateSize(key));
  return toRun(key, await cache.get({ key, lifetime, load }, toGetOptions(request, forceRefresh)));
}

function createKey({ endpoint: { definition }, values, pin }: PreparedQuery): string {
  return createCacheKey({
    endpointId: definition.id,
    pin,
    parameters: Object.keys(definition.parameters).map(name => [
      name,
      values[name]?.value?.toString() ?? null,
    ]),
  });
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

/**
 * `signal` is a getter, so that the signal is created only if a query runs. `cache.get` does not always run one: a forced refresh
 * within 10 s of the last one returns the cached result.
 *
 * This is a separate function because all closures of one function share one scope object. The cache entry keeps the callback
 * `() => cache.updateSize(key)` of runEndpoint. If this getter were in runEndpoint too, the entry would also keep the request.
 */
function toGetOptions(request: RequestContext | undefined, forceRefresh: boolean): GetOptions {
  return {
    forceRefresh,
    get signal() {
      return request?.signal;
    },
  };
}

function toRun(
  key: string,
  { value: result, outcome, ageMs, freshForMs }: CacheResult<EndpointResult>,
): EndpointRun {
  return { result, outcome, ageMs, freshForMs, key };
}

/** The cache entry keeps the returned function for its refreshes, so the function drops its reference to the request. */
function createLoad(
  dependencies: EndpointDependencies,
  prepared: PreparedQuery,
  request: RequestContext | undefined,
  onSizeChange: () => void,
): Load<EndpointResult> {
  const { definition } = prepared.endpoint;
  let firstRequest = request;
  return (signal, priority) => {
    const requestId = priority.background ? 'warming' : firstRequest?.id;
    firstRequest = undefined;
    const label = createLabel(definition, requestId);
    return loadResult(
      dependencies,
      prepared,
      { signal, priority, group: definition.name, label, requestId },
      onSizeChange,
    );
  };
}

/** The text that identifies a query in the store's own log. */
function createLabel({ name }: EndpointDefinition, requestId: string | undefined): string {
  return requestId === undefined ? name : `${name} ${requestId}`;
}

export function toQueryOptions(
  definition: EndpointDefinition,
  request: RequestContext | undefined,
): LoadOptions {
  const requestId = request?.id;
  const label = createLabel(definition, requestId);
  return { signal: request?.signal, group: definition.name, label, requestId };
}

async function runUncached(
  dependencies: EndpointDependencies,
  prepared: PreparedQuery,
  request: RequestContext | undefined,
): Promise<EndpointRun> {
  const options = toQueryOptions(prepared.endpoint.definition, request);
  const result = await loadResult(dependencies, prepared, options);
  return { result, outcome: 'bypass', ageMs: 0, freshForMs: 0 };
}

/** Throws `forbidden`: with a pinned token, `project` must equal one of its projects. */
export async function rejectProject(
  { store }: EndpointDependencies,
  definition: EndpointDefinition,
  values: BoundValues,
  { request, tokenName }: Pick<RunOptions, 'request' | 'tokenName'>,
): Promise<never> {
  // Parameters are checked before the pin, so an invalid pattern is reported as `invalid_parameter` here too.
  await checkPatterns(store, definition, values, toQueryOptions(definition, request));
  throw new RefusedError(
    'forbidden',
    'the token is pinned to projects: project must be the exact name of one of them',
    { reason: 'project_not_allowed', tokenName, param: 'project' },
  );
}

async function loadResult(
  { store, clock, maxResultBytes, timeLimitMs, observe }: EndpointDependencies,
  { endpoint, values, pin }: PreparedQuery,
  { requestId, ...options }: LoadOptions,
  onSizeChange?: () => void,
): Promise<EndpointResult> {
  const { definition } = endpoint;
  const { query } = selectQueries(endpoint, values);
  const now = clock();
  await checkPatterns(store, definition, values, options);
  // Read before the query runs, so that the query sees the record with this timestamp.
  const newest = await findNewest(store, definition, values, now, pin, options);
  const bound = addContextValues(definition, values, now, pin);
  const queryOptions = {
    ...options,
    maxBytes: maxResultBytes,
    range: findTimeRange(definition, values, now),
  };
  const page = definition.partial
    ? await querySlices({ store, definition, query, values: bound, newest, timeLimitMs }, queryOptions)
    : undefined;
  const queryResult = page?.result ?? (await store.query(query, bound, queryOptions));
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
  const resultOptions = { maxBytes: maxResultBytes, onSizeChange, cursorAfter: page?.cursorAfter };
  return new EndpointResult(
    query.columns,
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
  store: Store,
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

function startsBeforeRetention(definition: EndpointDefinition, values: BoundValues, now: bigint): boolean {
  const retention = definition.retention ?? boundRangeOf(definition);
  if (retention === undefined) return false;
  const start = values[retention.start];
  const days = values[retention.days];
  if (start?.type !== 'timestamp' || days?.type !== 'integer') return false;
  return (
    start.value !== null && days.value !== null && start.value < now - BigInt(days.value) * MICROS_PER_DAY
  );
}

/**
 * Lets the engine that runs the query validate the patterns, so a pattern that passes here cannot fail in the query. Rejects
 * patterns that could keep the engine busy for a long time.
 */
export async function checkPatterns(
  store: Store,
  definition: EndpointDefinition,
  values: BoundValues,
  options: QueryOptions,
): Promise<void> {
  for (const [name, { type }] of Object.entries(definition.parameters)) {
    const pattern = values[name]?.value;
    if (type !== 'pattern' || typeof pattern !== 'string') continue;
    const problem = await store.validatePattern(pattern, options);
    if (problem !== undefined)
      throw invalidPattern(name, `is not a valid regular expression (RE2 syntax): ${problem}`);
    const excess = findPatternExcess(pattern);
    if (excess !== undefined)
      throw invalidPattern(name, `is too expensive as a regular expression: ${excess}`);
  }
}

function invalidPattern(name: string, problem: string): DendroError {
  return new DendroError('invalid_parameter', `${name} ${problem}`, { param: name });
}
