// The one way from a call to its answer: rules, then cache, then store. Knows no HTTP.

import { createCacheKey } from '../cache/cache-key.ts';
import type { CacheOutcome, CacheResult, GetOptions, ResultCache } from '../cache/result-cache.ts';
import type { Load } from '../cache/single-flight.ts';
import { DendroError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { BoundValues, QueryOptions, Store } from '../store/store.ts';
import { type Clock, MICROS_PER_DAY } from '../system/clock.ts';
import type { Endpoint } from './catalog.ts';
import type { EndpointDefinition } from './definition.ts';
import { EndpointResult } from './endpoint-result.ts';
import { addContextValues, bindParameters } from './parameters.ts';
import type { ValidatedRequest, ValidatedRequests } from './validated-requests.ts';

export interface EndpointDependencies {
  readonly store: Store;
  readonly clock: Clock;
  /** Without one, every call runs its query. */
  readonly cache?: ResultCache<EndpointResult> | undefined;
  readonly validatedRequests?: ValidatedRequests | undefined;
}

export interface EndpointRequest extends GetOptions {
  /** By which this call is found in logs. */
  readonly id?: string | undefined;
  readonly parameters: URLSearchParams;
  /** What `given` and the endpoint were read from, to know the same call by. */
  readonly target?: string | undefined;
  /** The only projects that the caller may see. */
  readonly projects?: readonly string[] | undefined;
  readonly maxTier?: string | undefined;
}

export interface EndpointRun extends Omit<CacheResult<EndpointResult>, 'outcome'> {
  /** `bypass`: the endpoint is not cached. */
  readonly outcome: CacheOutcome | 'bypass';
}

/** A call after its rules: what will be asked of the store. */
interface PreparedQuery {
  readonly endpoint: Endpoint;
  readonly values: BoundValues;
  readonly pinnedProject: string | undefined;
}

/** A promise only where there is no answer at hand. */
export function runEndpoint(
  runner: EndpointDependencies,
  endpoint: Endpoint,
  call: EndpointRequest,
): EndpointRun | Promise<EndpointRun> {
  const { definition } = endpoint;
  const { values, key: openKey, pinnedKey } = checkCall(runner, definition, call);
  const pinnedProject = call.projects?.find(project => project === values['project']?.value);
  if (call.projects !== undefined && pinnedProject === undefined)
    return refuseProject(runner, definition, values, call);
  const asked: PreparedQuery = { endpoint, values, pinnedProject };
  const { cache } = runner;
  if (definition.cache === 'none' || cache === undefined) return runPastCache(runner, asked, call);
  const key = pinnedProject === undefined ? openKey : pinnedKey;
  const { lifetime_seconds, warming_seconds } = definition.cache;
  const atHand = call.forceRefresh ? undefined : cache.peek(key);
  if (atHand !== undefined) return atHand;
  // Its id is made only where the store is asked. An entry keeps its load for warming, but not the call that made it.
  let caller: EndpointRequest | undefined = call;
  const load: Load<EndpointResult> = (signal, priority) => {
    const label = labelOf(definition, priority.background ? 'warming' : caller?.id);
    caller = undefined;
    return loadAnswer(runner, asked, { signal, priority, label }, () => cache.updateSize(key));
  };
  const lifetime = { lifetimeMs: lifetime_seconds * 1000, refreshAfterMs: warming_seconds * 1000 };
  return cache.get({ key, lifetime, load }, call);
}

function labelOf({ name }: EndpointDefinition, what: string | undefined): string {
  return what === undefined ? name : `${name} ${what}`;
}

async function runPastCache(
  runner: EndpointDependencies,
  asked: PreparedQuery,
  { signal, id }: EndpointRequest,
): Promise<EndpointRun> {
  const value = await loadAnswer(runner, asked, { signal, label: labelOf(asked.endpoint.definition, id) });
  return { value, outcome: 'bypass', ageMs: 0, freshForMs: 0 };
}

/** A pinned caller asks for one of its projects, literally, and gets records of that one alone. */
async function refuseProject(
  { store }: EndpointDependencies,
  definition: EndpointDefinition,
  values: BoundValues,
  call: EndpointRequest,
): Promise<never> {
  // What is wrong with a value is told before whose it is.
  const { signal, id } = call;
  await checkPatterns(store, definition, values, { signal, label: labelOf(definition, id) });
  throw new DendroError('forbidden', 'the token may ask for its own projects alone, by their exact name', {
    param: 'project',
  });
}

/** By the rules, or by what they made of the very same text before. */
function checkCall(
  { validatedRequests }: EndpointDependencies,
  definition: EndpointDefinition,
  call: EndpointRequest,
): ValidatedRequest {
  const { target, maxTier } = call;
  const known = target === undefined ? undefined : validatedRequests?.get({ target, maxTier });
  if (known !== undefined) return known;
  const values = bindParameters(definition, call.parameters, maxTier);
  const checked = {
    values,
    key: keyOf(definition, values, undefined),
    pinnedKey: keyOf(definition, values, String(values['project']?.value)),
  };
  if (target !== undefined && definition.cache !== 'none')
    validatedRequests?.set({ target, maxTier }, checked);
  return checked;
}

/** A token that is pinned gets records of the project that it asks for, or none at all. */
function keyOf(
  definition: EndpointDefinition,
  values: BoundValues,
  pinnedProject: string | undefined,
): string {
  return createCacheKey({
    endpointId: definition.id,
    pinnedProject,
    parameters: Object.keys(definition.parameters).map(name => [
      name,
      values[name]?.value?.toString() ?? null,
    ]),
  });
}

async function loadAnswer(
  { store, clock }: EndpointDependencies,
  asked: PreparedQuery,
  call: QueryOptions,
  onGrowth?: () => void,
): Promise<EndpointResult> {
  const { endpoint, values, pinnedProject } = asked;
  const { definition, query } = endpoint;
  const now = clock();
  await checkPatterns(store, definition, values, call);
  // Asked before the query runs: whatever it names, the query sees.
  const newest = await store.newest(definition.reads, now, pinnedProject, call);
  const result = await store.query(query, addContextValues(values, now, pinnedProject), call);
  const clipped: ('row-limit' | 'retention')[] = [];
  if (result.truncated) clipped.push('row-limit');
  if (asksBeforeRetention(definition, values, now)) clipped.push('retention');
  const dataThrough = newest === undefined ? undefined : formatTimestamp(newest);
  return new EndpointResult(query.columns, result, { dataThrough, clipped }, onGrowth);
}

function asksBeforeRetention({ retention }: EndpointDefinition, values: BoundValues, now: bigint): boolean {
  if (retention === undefined) return false;
  const start = values[retention.start];
  const days = values[retention.days];
  if (start?.type !== 'timestamp' || days?.type !== 'integer') return false;
  return (
    start.value !== null && days.value !== null && start.value < now - BigInt(days.value) * MICROS_PER_DAY
  );
}

/** The engine that will run an expression judges it, so that what passes here cannot fail there. */
async function checkPatterns(
  store: Store,
  definition: EndpointDefinition,
  values: BoundValues,
  call: QueryOptions,
): Promise<void> {
  for (const [name, rule] of Object.entries(definition.parameters)) {
    const pattern = values[name]?.value;
    if (rule.type !== 'pattern' || typeof pattern !== 'string') continue;
    const fault = await store.validatePattern(pattern, call);
    if (fault === undefined) continue;
    const message = `${name} is not a valid regular expression (RE2 syntax): ${fault}`;
    throw new DendroError('invalid_parameter', message, { param: name });
  }
}
