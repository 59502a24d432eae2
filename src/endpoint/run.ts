// The one way from a call to its answer: rules, then cache, then store. Knows no HTTP.
import type { Load } from '../cache/flight.ts';
import { makeCacheKey } from '../cache/key.ts';
import type { Caller, Found, Outcome, ResultCache } from '../cache/result-cache.ts';
import { type Clock, MICROS_PER_DAY } from '../clock.ts';
import { DendroError } from '../errors.ts';
import type { BoundValues, QueryCall, Store } from '../store/store.ts';
import { formatTimestamp } from '../timestamp.ts';
import { Answer } from './answer.ts';
import type { Endpoint } from './catalog.ts';
import type { CheckedCall, CheckedCalls } from './checked-calls.ts';
import type { EndpointDefinition } from './definition.ts';
import { bindParameters, completeValues } from './parameters.ts';

export interface Runner {
  readonly store: Store;
  readonly clock: Clock;
  /** Without one, every call runs its query. */
  readonly cache?: ResultCache<Answer> | undefined;
  readonly checkedCalls?: CheckedCalls | undefined;
}

export interface EndpointCall extends Caller {
  /** By which this call is found in logs. */
  readonly id?: string | undefined;
  readonly given: URLSearchParams;
  /** What `given` and the endpoint were read from, to know the same call by. */
  readonly text?: string | undefined;
  /** The only projects that the caller may see. */
  readonly projects?: readonly string[] | undefined;
  readonly highestTier?: string | undefined;
}

export interface Ran extends Omit<Found<Answer>, 'outcome'> {
  /** `bypass`: the endpoint is not cached. */
  readonly outcome: Outcome | 'bypass';
}

/** A call after its rules: what will be asked of the store. */
interface Asked {
  readonly endpoint: Endpoint;
  readonly values: BoundValues;
  readonly pinnedProject: string | undefined;
}

/** A promise only where there is no answer at hand. */
export function runEndpoint(runner: Runner, endpoint: Endpoint, call: EndpointCall): Ran | Promise<Ran> {
  const { definition } = endpoint;
  const { values, key: openKey, pinnedKey } = checkCall(runner, definition, call);
  const pinnedProject = call.projects?.find(project => project === values['project']?.value);
  if (call.projects !== undefined && pinnedProject === undefined)
    return refuseProject(runner, definition, values, call);
  const asked: Asked = { endpoint, values, pinnedProject };
  const { cache } = runner;
  if (definition.cache === 'none' || cache === undefined) return runPastCache(runner, asked, call);
  const key = pinnedProject === undefined ? openKey : pinnedKey;
  const { lifetime_seconds, warming_seconds } = definition.cache;
  const atHand = call.insists ? undefined : cache.peek(key);
  if (atHand !== undefined) return atHand;
  // Its id is made only where the store is asked. An entry keeps its load for warming, but not the call that made it.
  let caller: EndpointCall | undefined = call;
  const load: Load<Answer> = (signal, urgency) => {
    const label = labelOf(definition, urgency.background ? 'warming' : caller?.id);
    caller = undefined;
    return loadAnswer(runner, asked, { signal, urgency, label }, () => cache.recount(key));
  };
  const lifetime = { lifetimeMs: lifetime_seconds * 1000, warmingMs: warming_seconds * 1000 };
  return cache.get({ key, lifetime, load }, call);
}

function labelOf({ name }: EndpointDefinition, what: string | undefined): string {
  return what === undefined ? name : `${name} ${what}`;
}

async function runPastCache(runner: Runner, asked: Asked, { signal, id }: EndpointCall): Promise<Ran> {
  const value = await loadAnswer(runner, asked, { signal, label: labelOf(asked.endpoint.definition, id) });
  return { value, outcome: 'bypass', ageMs: 0, freshMs: 0 };
}

/** A pinned caller asks for one of its projects, literally, and gets records of that one alone. */
async function refuseProject(
  { store }: Runner,
  definition: EndpointDefinition,
  values: BoundValues,
  call: EndpointCall,
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
  { checkedCalls }: Runner,
  definition: EndpointDefinition,
  call: EndpointCall,
): CheckedCall {
  const { text, highestTier } = call;
  const known = text === undefined ? undefined : checkedCalls?.find({ text, highestTier });
  if (known !== undefined) return known;
  const values = bindParameters(definition, call.given, highestTier);
  const checked = {
    values,
    key: keyOf(definition, values, undefined),
    pinnedKey: keyOf(definition, values, String(values['project']?.value)),
  };
  if (text !== undefined && definition.cache !== 'none') checkedCalls?.keep({ text, highestTier }, checked);
  return checked;
}

/** A token that is pinned gets records of the project that it asks for, or none at all. */
function keyOf(
  definition: EndpointDefinition,
  values: BoundValues,
  pinnedProject: string | undefined,
): string {
  return makeCacheKey({
    endpointId: definition.id,
    pinnedProject,
    parameters: Object.keys(definition.parameters).map(name => [
      name,
      values[name]?.value?.toString() ?? null,
    ]),
  });
}

async function loadAnswer(
  { store, clock }: Runner,
  asked: Asked,
  call: QueryCall,
  onGrowth?: () => void,
): Promise<Answer> {
  const { endpoint, values, pinnedProject } = asked;
  const { definition, query } = endpoint;
  const now = clock();
  await checkPatterns(store, definition, values, call);
  // Asked before the query runs: whatever it names, the query sees.
  const newest = await store.newest(definition.reads, now, pinnedProject, call);
  const result = await store.query(query, completeValues(values, now, pinnedProject), call);
  const clipped: ('row-limit' | 'retention')[] = [];
  if (result.cut) clipped.push('row-limit');
  if (asksBeforeRetention(definition, values, now)) clipped.push('retention');
  const dataThrough = newest === undefined ? undefined : formatTimestamp(newest);
  return new Answer(query.columns, result, { dataThrough, clipped }, onGrowth);
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
  call: QueryCall,
): Promise<void> {
  for (const [name, rule] of Object.entries(definition.parameters)) {
    const pattern = values[name]?.value;
    if (rule.type !== 'pattern' || typeof pattern !== 'string') continue;
    const fault = await store.findPatternFault(pattern, call);
    if (fault === undefined) continue;
    const message = `${name} is not a valid regular expression (RE2 syntax): ${fault}`;
    throw new DendroError('invalid_parameter', message, { param: name });
  }
}
