// Explains the result of an endpoint: how many records remain after each condition of its query. The explain SQL in the
// endpoint's folder counts them. An explanation is never cached.
import { DendroError } from '../domain/errors.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { BoundValue, BoundValues, Cell, SavedQuery } from '../store/store.ts';
import { type Endpoint, fillQuery } from './catalog.ts';
import { type EndpointDefinition, EXPLAIN_TIMES, hasProject, selectKinds } from './definition.ts';
import { addContextValues } from './parameters.ts';
import {
  checkPatterns,
  type EndpointDependencies,
  findPin,
  type RunOptions,
  rejectProject,
  toQueryOptions,
} from './run-endpoint.ts';

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
interface RecordCounts {
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
  values: BoundValues,
  runOptions: Pick<RunOptions, 'token' | 'request'> = {},
): Promise<Explanation> {
  const { definition, explainFile } = endpoint;
  const { store, clock, observe } = dependencies;
  const template = requireExplainQuery(endpoint); // first: an endpoint without explain SQL is always not_found
  const { projects } = runOptions.token ?? {};
  const pin = projects === undefined ? undefined : findPin(definition, values, projects);
  if (pin?.length === 0) return rejectProject(dependencies, definition, values, runOptions);
  const { requestId, ...options } = toQueryOptions(definition, runOptions);
  const isExpensive = await checkPatterns(store, definition, values, options);
  const { query, values: filled } = fillQuery(definition, template, values, store.name);
  const bound = addContextValues(definition, filled, clock(), pin);
  const { rows, truncated, queuedMs, executedMs } = await store.query(query, bound, {
    ...options,
    isExpensive,
  });
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

/** The parts of the sentence that depend on a condition. */
interface Phrases {
  /** Describes the records that meet the condition, such as "of this project" in "3 records of this project". */
  readonly met: string;
  /** Completes "none …". */
  readonly none: string;
  /** Completes "the only record …". */
  readonly only: string;
  /** Completes "all …", if all records fail the condition for the same known reason. */
  readonly all?: string | undefined;
}

/**
 * One sentence: how many records match all conditions. If none does, it names the first condition that no remaining record meets, and
 * the reason if it is known.
 */
function summarize(definition: EndpointDefinition, values: BoundValues, counts: RecordCounts): string {
  const { newest, conditions } = counts;
  const emptyIndex = conditions.findIndex(({ remaining }) => remaining === 0);
  const empty = conditions[emptyIndex];
  if (empty === undefined) return summarizeMatches(conditions.at(-1)?.remaining);
  const before = conditions.slice(0, emptyIndex);
  const phrases = describeCondition(empty.name, definition, values, counts);
  const remaining = before.at(-1)?.remaining;
  if (remaining === undefined) {
    const kinds = selectKinds(definition, values);
    const logs = kinds.length === 1 ? `${kinds[0]} ` : '';
    return `0 rows: ${describeEmptyStart(logs, empty.name, phrases, newest)}`;
  }
  const met = before.map(({ name }) => describeCondition(name, definition, values, counts).met);
  return `0 rows: ${describeRemoved(remaining, met.join(' '), phrases)}`;
}

/** `remaining` is undefined if no condition applies to the request. */
function summarizeMatches(remaining: number | undefined): string {
  if (remaining === undefined) return 'no condition applies to this request';
  return remaining === 1
    ? '1 record matches all conditions'
    : `${formatCount(remaining)} records match all conditions`;
}

/** No record meets the first condition. `logs` is the log kind and a space, or empty if the query reads several kinds. */
function describeEmptyStart(
  logs: string,
  condition: string,
  { met, none }: Phrases,
  newest: bigint | null,
): string {
  if (condition === 'project') return `the store has no ${logs}records ${met}`;
  if (newest === null) return `the store has no ${logs}records`;
  return `no ${logs}record ${none}; the newest is from ${formatTimestamp(newest)}`;
}

/** `count` records meet the earlier conditions, which `met` describes, and none of them meets the condition of the phrases. */
function describeRemoved(count: number, met: string, { none, only, all }: Phrases): string {
  if (all !== undefined)
    return count === 1
      ? `1 record ${met} matches, but it is ${all}`
      : `${formatCount(count)} records ${met} match, all ${all}`;
  return count === 1
    ? `the only record ${met} ${only}`
    : `of ${formatCount(count)} records ${met}, none ${none}`;
}

/** Conditions with a well-known name have their own phrases. For any other condition, the phrases contain its name. */
function describeCondition(
  name: string,
  definition: EndpointDefinition,
  values: BoundValues,
  counts: RecordCounts,
): Phrases {
  switch (name) {
    case 'project':
      return toPhrases(hasProject(definition) ? 'of this project' : "of the token's projects");
    case 'window':
      return { ...toPhrases('in the time window'), all: describeOutside('time window', counts) };
    case 'range':
      return { ...toPhrases('in the requested range'), all: describeOutside('requested range', counts) };
    case 'retention': {
      const retention = describeRetention(definition, values);
      return { ...toPhrases(`within ${retention}`), all: `older than ${retention}` };
    }
    case 'function':
      return toPhrases('of this function');
    case 'search':
      return { met: 'that match the search', none: 'matches the search', only: 'does not match the search' };
    case 'pattern':
      return {
        met: 'whose URL matches the pattern',
        none: 'has a URL that matches the pattern',
        only: 'has no URL that matches the pattern',
      };
    default:
      return {
        met: `after the condition ${name}`,
        none: `meets the condition ${name}`,
        only: `does not meet the condition ${name}`,
      };
  }
}

function toPhrases(met: string): Phrases {
  return { met, none: `is ${met}`, only: `is not ${met}` };
}

/** Undefined unless all records are older than the window, or all are newer. */
function describeOutside(
  window: string,
  { windowStart, windowEnd, newest, oldest }: RecordCounts,
): string | undefined {
  if (newest !== null && windowStart !== null && newest < windowStart)
    return `older than the start of the ${window}, ${formatTimestamp(windowStart)}`;
  if (oldest !== null && windowEnd !== null && oldest > windowEnd)
    return `newer than the end of the ${window}, ${formatTimestamp(windowEnd)}`;
  return undefined;
}

/** Such as "the FREE tier's 1 day". */
function describeRetention({ parameters, range }: EndpointDefinition, values: BoundValues): string {
  const name = range?.days ?? '';
  const days = values[name]?.value;
  if (typeof days !== 'number') return 'the retention';
  const duration = days === 1 ? '1 day' : `${formatCount(days)} days`;
  const tierParameter = Object.entries(parameters).find(
    ([, parameter]) =>
      parameter.type === 'choice' &&
      parameter.tiers &&
      Object.values(parameter.choices).some(choice => Object.hasOwn(choice, name)),
  );
  const tier = tierParameter === undefined ? undefined : values[tierParameter[0]]?.value;
  return typeof tier === 'string' ? `the ${tier} tier's ${duration}` : `the retention of ${duration}`;
}

function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}
