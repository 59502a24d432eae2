// Creates the summary sentence of an explanation: how many records match all conditions. If none does, it names the first
// condition that no remaining record meets, and the reason if it is known.
import { formatTimestamp } from '../domain/timestamp.ts';
import type { BoundValues } from '../store/store.ts';
import { boundRangeOf, type EndpointDefinition, hasProject, selectKinds } from './definition.ts';
import type { RecordCounts } from './explain.ts';

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

export function summarize(definition: EndpointDefinition, values: BoundValues, counts: RecordCounts): string {
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
function describeRetention(definition: EndpointDefinition, values: BoundValues): string {
  const { parameters } = definition;
  const retention = definition.retention ?? boundRangeOf(definition);
  const days = retention === undefined ? undefined : values[retention.days]?.value;
  if (retention === undefined || typeof days !== 'number') return 'the retention';
  const duration = days === 1 ? '1 day' : `${formatCount(days)} days`;
  const tierParameter = Object.entries(parameters).find(
    ([, parameter]) =>
      parameter.type === 'choice' &&
      parameter.tiers &&
      Object.values(parameter.choices).some(choice => Object.hasOwn(choice, retention.days)),
  );
  const tier = tierParameter === undefined ? undefined : values[tierParameter[0]]?.value;
  return typeof tier === 'string' ? `the ${tier} tier's ${duration}` : `the retention of ${duration}`;
}

function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}
