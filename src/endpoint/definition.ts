// The vocabulary of endpoint.yaml: what an endpoint is, which parameters it takes and by which rules.
import * as v from 'valibot';
import { LOG_KINDS } from '../domain/log-columns.ts';

const description = v.pipe(v.string(), v.nonEmpty('must not be empty'));
const flag = v.optional(v.boolean(), false);
const positive = v.pipe(v.number(), v.integer('must be a whole number'), v.minValue(1));

/** A name as SQL parameters and columns may have it. */
const name = v.pipe(
  v.string(),
  v.regex(/^[a-z][a-z0-9_]*$/, 'must be lower-case letters, digits and underscores'),
);

const carried = v.union([v.string(), v.pipe(v.number(), v.integer())], 'must be a text or a whole number');

const parameter = v.variant('type', [
  /** Any text of up to 1,024 characters without NUL. Bound as text. */
  v.strictObject({ type: v.literal('text'), required: flag, description }),
  /** As text, and a regular expression in RE2 syntax. Bound as text. */
  v.strictObject({ type: v.literal('pattern'), required: flag, description }),
  /** An RFC 3339 date-time or a date. Bound as a timestamp. */
  v.strictObject({ type: v.literal('timestamp'), required: flag, description }),
  /**
   * One of a list. Bound as text, and so is each value that the choice carries, under its own name. With `fallback`
   * any other value, and none, behaves as that one; without, any other value is an error that lists the choices.
   */
  v.strictObject({
    type: v.literal('choice'),
    required: flag,
    choices: v.record(v.string(), v.record(name, carried)),
    fallback: v.optional(v.string()),
    /** The choices are tiers, from the lowest to the highest; one above a token's highest behaves as that one. */
    tiers: flag,
    description,
  }),
]);

const columnType = v.picklist(['text', 'integer', 'number', 'json', 'unix_microseconds', 'utc_datetime']);

const endpointDefinition = v.strictObject({
  id: v.pipe(v.string(), v.uuid('must be a UUID'), v.toLowerCase()),
  name: v.pipe(
    v.string(),
    v.regex(
      /^[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*$/,
      'must be dotted lower-case words, such as usage.api-counts',
    ),
  ),
  description,
  /** The log kind that the query reads: how new an answer is depends on it. */
  reads: v.picklist(LOG_KINDS),
  /**
   * The SQL returns records of one project alone where `$pinned_project` is not null. Only then may a token that is
   * pinned to projects call the endpoint.
   */
  applies_pin: flag,
  parameters: v.record(name, parameter),
  columns: v.record(name, v.strictObject({ type: columnType, description })),
  /**
   * The query returns no records older than a retention: which parameter asks for a start, and under which name the
   * days of retention are bound. Where the asked start lies before it, the answer says that it was clipped.
   */
  retention: v.optional(v.strictObject({ start: name, days: name })),
  max_rows: v.optional(v.pipe(positive, v.maxValue(1000)), 1000),
  /** `none`: every call runs the query. */
  cache: v.union(
    [v.literal('none'), v.strictObject({ lifetime_seconds: positive, warming_seconds: positive })],
    'must be none, or lifetime_seconds and warming_seconds, whole numbers from 1',
  ),
});

export type EndpointDefinition = v.InferOutput<typeof endpointDefinition>;
export type Parameter = v.InferOutput<typeof parameter>;
export type ChoiceParameter = Extract<Parameter, { type: 'choice' }>;

export interface DefinitionFault {
  readonly path: readonly string[];
  readonly message: string;
}

/** The definition that a file holds, or the first thing that is wrong with it. */
export function readDefinition(content: unknown): EndpointDefinition | { readonly fault: DefinitionFault } {
  const unusable = findUnusableKey(content);
  if (unusable !== undefined) return { fault: unusable };
  const { success, output, issues } = v.safeParse(endpointDefinition, content, { message: describeIssue });
  if (!success) return { fault: asFault(issues[0]) };
  const fault = findFault(output);
  return fault === undefined ? output : { fault };
}

/** Every object has these, so that libraries pass over them in silence. */
const UNUSABLE_KEYS = ['__proto__', 'prototype', 'constructor'];

function findUnusableKey(content: unknown, path: readonly string[] = []): DefinitionFault | undefined {
  if (typeof content !== 'object' || content === null) return undefined;
  for (const [key, value] of Object.entries(content)) {
    const here = [...path, key];
    const fault = UNUSABLE_KEYS.includes(key)
      ? { path: here, message: 'nothing can have this name' }
      : findUnusableKey(value, here);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** Keys of earlier versions, so that the error for one names its replacement. */
const RENAMED_KEYS = new Map([['otherwise', 'fallback']]);

function asFault({ path, message, expected }: v.BaseIssue<unknown>): DefinitionFault {
  const keys = path?.map(({ key }) => String(key)) ?? [];
  const newKey = expected === 'never' ? RENAMED_KEYS.get(keys.at(-1) ?? '') : undefined;
  return { path: keys, message: newKey === undefined ? message : `this key is now called ${newKey}` };
}

/** For what has no words of its own. */
function describeIssue({ expected, received }: v.BaseIssue<unknown>): string {
  if (expected === 'never') return 'there is no such key';
  return received === 'undefined' ? 'is missing' : `must be ${expected}, not ${received}`;
}

function findFault({ parameters, retention, columns }: EndpointDefinition): DefinitionFault | undefined {
  const [nameFault] = findNameFaults(parameters);
  if (nameFault !== undefined) return nameFault;
  const retentionFault = findRetentionFault(parameters, retention);
  if (retentionFault !== undefined) return { path: ['retention'], message: retentionFault };
  return Object.keys(columns).length === 0
    ? { path: ['columns'], message: 'needs at least one column' }
    : undefined;
}

/** Names that an answer's own settings use, or that every query is given. */
const RESERVED_NAMES = ['now', 'pinned_project', 'format'];

function findNameFaults(parameters: Record<string, Parameter>): DefinitionFault[] {
  const faults: DefinitionFault[] = [];
  const taken = new Set([...RESERVED_NAMES]);
  for (const [parameterName, rule] of Object.entries(parameters)) {
    const path = ['parameters', parameterName];
    for (const boundName of [parameterName, ...(rule.type === 'choice' ? carriedNames(rule) : [])]) {
      if (taken.has(boundName)) faults.push({ path, message: `the name ${boundName} is taken` });
      taken.add(boundName);
    }
    if (rule.type === 'choice') faults.push(...findChoiceFaults(rule, path));
  }
  return faults;
}

function findRetentionFault(
  parameters: Record<string, Parameter>,
  retention: { start: string; days: string } | undefined,
): string | undefined {
  if (retention === undefined) return undefined;
  if (parameters[retention.start]?.type !== 'timestamp')
    return `${retention.start} is no parameter of type timestamp`;
  const carriesDays = Object.values(parameters).some(
    rule =>
      rule.type === 'choice' &&
      Object.values(rule.choices).some(carried => typeof carried[retention.days] === 'number'),
  );
  return carriesDays ? undefined : `no choice carries ${retention.days} as a number`;
}

function findChoiceFaults(rule: ChoiceParameter, path: string[]): DefinitionFault[] {
  const choices = Object.values(rule.choices);
  if (choices.length === 0) return [{ path, message: 'needs at least one choice' }];
  if (rule.tiers && Object.keys(rule.choices).some(name => /^\d+$/.test(name)))
    return [{ path, message: 'a tier cannot be named by a number: the order of the tiers would be lost' }];
  if (rule.fallback !== undefined && !Object.hasOwn(rule.choices, rule.fallback))
    return [{ path: [...path, 'fallback'], message: 'must be one of the choices' }];
  const shapes = choices.map(carried => describeShape(carried));
  if (new Set(shapes).size > 1) return [{ path, message: 'every choice must carry the same values' }];
  return [];
}

function describeShape(carried: Record<string, string | number>): string {
  return Object.entries(carried)
    .map(([key, value]) => `${key}:${typeof value}`)
    .sort()
    .join();
}

/** The names under which a choice's values are bound. */
export function carriedNames(rule: ChoiceParameter): string[] {
  return Object.keys(Object.values(rule.choices)[0] ?? {});
}
