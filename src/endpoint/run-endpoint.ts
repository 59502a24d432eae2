// Runs an endpoint for a validated request: cache first, then the store. Knows no HTTP.

import type { CacheOutcome, CacheResult, ResultCache } from '../cache/result-cache.ts';
import type { Load } from '../cache/single-flight.ts';
import { DendroError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { BoundValues, QueryOptions, Store } from '../store/store.ts';
import { type Clock, MICROS_PER_DAY } from '../system/clock.ts';
import type { Endpoint } from './catalog.ts';
import type { EndpointDefinition } from './definition.ts';
import { EndpointResult } from './endpoint-result.ts';
import { addContextValues } from './parameters.ts';
import type { ValidatedRequest } from './validated-requests.ts';

export interface EndpointDependencies {
  readonly store: Store;
  readonly clock: Clock;
  /** Without a cache, every request runs its query. */
  readonly cache?: ResultCache<EndpointResult> | undefined;
}

export interface RunOptions {
  /** The projects that the token is pinned to; undefined: any project. */
  readonly projects?: readonly string[] | undefined;
  /** Runs the query even if its result is cached. */
  readonly forceRefresh?: boolean;
  readonly request?: RequestContext | undefined;
}

/** Both values may be created when they are first read: a cache hit reads neither. */
export interface RequestContext {
  /** Identifies the request in logs. */
  readonly id: string;
  /** Aborts when the sender disconnects before the response. */
  readonly signal: AbortSignal;
}

export interface EndpointRun extends Omit<CacheResult<EndpointResult>, 'outcome'> {
  /** `bypass`: the endpoint is not cached. */
  readonly outcome: CacheOutcome | 'bypass';
}

/** The query of a request and everything that its result depends on. */
interface PreparedQuery {
  readonly endpoint: Endpoint;
  readonly values: BoundValues;
  readonly pinnedProject: string | undefined;
}

/**
 * Returns a promise only if the result is not cached: awaiting a promise takes a noticeable part of the time of a cached
 * hit.
 */
export function runEndpoint(
  dependencies: EndpointDependencies,
  endpoint: Endpoint,
  validated: ValidatedRequest,
  options: RunOptions = {},
): EndpointRun | Promise<EndpointRun> {
  const { definition } = endpoint;
  const { values } = validated;
  const { projects, forceRefresh = false, request } = options;
  const pinnedProject = projects?.find(project => project === values['project']?.value);
  if (projects !== undefined && pinnedProject === undefined)
    return rejectProject(dependencies, definition, values, request);
  const prepared: PreparedQuery = { endpoint, values, pinnedProject };
  const { cache } = dependencies;
  if (definition.cache === 'none' || cache === undefined) return runUncached(dependencies, prepared, request);
  const key = pinnedProject === undefined ? validated.key : validated.pinnedKey;
  const cached = forceRefresh ? undefined : cache.getCached(key);
  if (cached !== undefined) return cached;
  const { lifetime_seconds, warming_seconds } = definition.cache;
  const lifetime = { lifetimeMs: lifetime_seconds * 1000, refreshAfterMs: warming_seconds * 1000 };
  const load = createLoad(dependencies, prepared, request, () => cache.updateSize(key));
  return cache.get(
    { key, lifetime, load },
    {
      forceRefresh,
      // A getter, because a refresh that is throttled returns the cached result and needs no signal.
      get signal() {
        return request?.signal;
      },
    },
  );
}

/** The cache entry keeps this function for its refreshes, so the function releases the request after its first run. */
function createLoad(
  dependencies: EndpointDependencies,
  prepared: PreparedQuery,
  request: RequestContext | undefined,
  onGrowth: () => void,
): Load<EndpointResult> {
  const { definition } = prepared.endpoint;
  let firstRequest = request;
  return (signal, priority) => {
    const label = createLabel(definition, priority.background ? 'warming' : firstRequest?.id);
    firstRequest = undefined;
    return loadResult(dependencies, prepared, { signal, priority, label }, onGrowth);
  };
}

/** What the store's own log shows for a query. */
function createLabel({ name }: EndpointDefinition, origin: string | undefined): string {
  return origin === undefined ? name : `${name} ${origin}`;
}

function toQueryOptions(definition: EndpointDefinition, request: RequestContext | undefined): QueryOptions {
  return { signal: request?.signal, label: createLabel(definition, request?.id) };
}

async function runUncached(
  dependencies: EndpointDependencies,
  prepared: PreparedQuery,
  request: RequestContext | undefined,
): Promise<EndpointRun> {
  const options = toQueryOptions(prepared.endpoint.definition, request);
  const value = await loadResult(dependencies, prepared, options);
  return { value, outcome: 'bypass', ageMs: 0, freshForMs: 0 };
}

/** A pinned token must name one of its projects literally. */
async function rejectProject(
  { store }: EndpointDependencies,
  definition: EndpointDefinition,
  values: BoundValues,
  request: RequestContext | undefined,
): Promise<never> {
  // Parameters are checked before the project pin: an invalid pattern is reported as such.
  await checkPatterns(store, definition, values, toQueryOptions(definition, request));
  throw new DendroError(
    'forbidden',
    'the token is pinned to projects: project must be the exact name of one of them',
    { param: 'project' },
  );
}

async function loadResult(
  { store, clock }: EndpointDependencies,
  { endpoint, values, pinnedProject }: PreparedQuery,
  options: QueryOptions,
  onGrowth?: () => void,
): Promise<EndpointResult> {
  const { definition, query } = endpoint;
  const now = clock();
  await checkPatterns(store, definition, values, options);
  // Before the query, so that the query sees every record up to the time that is reported.
  const newest = await store.newestTimestamp(definition.reads, now, pinnedProject, options);
  const result = await store.query(query, addContextValues(values, now, pinnedProject), options);
  const clipped: ('row-limit' | 'retention')[] = [];
  if (result.truncated) clipped.push('row-limit');
  if (startsBeforeRetention(definition, values, now)) clipped.push('retention');
  const dataThrough = newest === undefined ? undefined : formatTimestamp(newest);
  return new EndpointResult(query.columns, result, { dataThrough, clipped }, onGrowth);
}

function startsBeforeRetention({ retention }: EndpointDefinition, values: BoundValues, now: bigint): boolean {
  if (retention === undefined) return false;
  const start = values[retention.start];
  const days = values[retention.days];
  if (start?.type !== 'timestamp' || days?.type !== 'integer') return false;
  return (
    start.value !== null && days.value !== null && start.value < now - BigInt(days.value) * MICROS_PER_DAY
  );
}

/** The engine that runs the expression validates it, so a pattern that passes here cannot fail in the query. */
async function checkPatterns(
  store: Store,
  definition: EndpointDefinition,
  values: BoundValues,
  options: QueryOptions,
): Promise<void> {
  for (const [name, rule] of Object.entries(definition.parameters)) {
    const pattern = values[name]?.value;
    if (rule.type !== 'pattern' || typeof pattern !== 'string') continue;
    const problem = await store.validatePattern(pattern, options);
    if (problem === undefined) continue;
    const message = `${name} is not a valid regular expression (RE2 syntax): ${problem}`;
    throw new DendroError('invalid_parameter', message, { param: name });
  }
}
