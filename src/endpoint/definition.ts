// The vocabulary of endpoint.yaml: what an endpoint is, which parameters it takes and by which rules.
import { z } from 'zod';
import { LOG_KINDS } from '../log-record.ts';

const description = z.string().min(1);

/** A name as SQL parameters and columns may have it. */
const name = z.string().regex(/^[a-z][a-z0-9_]*$/, 'must be lower-case letters, digits and underscores');

const parameter = z.discriminatedUnion('type', [
  /** Any text of up to 1,024 characters without NUL. Bound as text. */
  z.strictObject({ type: z.literal('text'), required: z.boolean().default(false), description }),
  /** As text, and a regular expression in RE2 syntax. Bound as text. */
  z.strictObject({ type: z.literal('pattern'), required: z.boolean().default(false), description }),
  /** An RFC 3339 date-time or a date. Bound as a timestamp. */
  z.strictObject({ type: z.literal('timestamp'), required: z.boolean().default(false), description }),
  /**
   * One of a list. Bound as text, and so is each value that the choice carries, under its own name. With `otherwise`
   * any other value, and none, behaves as that one; without, any other value is an error that lists the choices.
   */
  z.strictObject({
    type: z.literal('choice'),
    required: z.boolean().default(false),
    choices: z.record(z.string(), z.record(name, z.union([z.string(), z.int()]))),
    otherwise: z.string().optional(),
    /** The choices are tiers, from the lowest to the highest; one above a token's highest behaves as that one. */
    tiers: z.boolean().default(false),
    description,
  }),
]);

const columnType = z.enum(['text', 'integer', 'number', 'json', 'unix_microseconds', 'utc_datetime']);

export const endpointDefinition = z
  .strictObject({
    id: z.guid().toLowerCase(),
    name: z
      .string()
      .regex(
        /^[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*$/,
        'must be dotted lower-case words, such as usage.api-counts',
      ),
    description,
    /** The log kind that the query reads: how new an answer is depends on it. */
    reads: z.enum(LOG_KINDS),
    /**
     * The SQL returns records of one project alone where `$pinned_project` is not null. Only then may a token that is
     * pinned to projects call the endpoint.
     */
    applies_pin: z.boolean().default(false),
    parameters: z.record(name, parameter),
    columns: z.record(name, z.strictObject({ type: columnType, description })),
    /**
     * The query returns no records older than a retention: which parameter asks for a start, and under which name the
     * days of retention are bound. Where the asked start lies before it, the answer says that it was clipped.
     */
    retention: z.strictObject({ start: name, days: name }).optional(),
    max_rows: z.int().min(1).max(1000).default(1000),
    /** `none`: every call runs the query. */
    cache: z.union([
      z.literal('none'),
      z.strictObject({ lifetime_seconds: z.int().min(1), warming_seconds: z.int().min(1) }),
    ]),
  })
  .superRefine((definition, context) => {
    for (const fault of findNameFaults(definition.parameters)) context.addIssue({ code: 'custom', ...fault });
    const fault = findRetentionFault(definition.parameters, definition.retention);
    if (fault !== undefined) context.addIssue({ code: 'custom', path: ['retention'], message: fault });
    if (Object.keys(definition.columns).length === 0)
      context.addIssue({ code: 'custom', path: ['columns'], message: 'needs at least one column' });
  });

export type EndpointDefinition = z.infer<typeof endpointDefinition>;
export type Parameter = z.infer<typeof parameter>;
export type ChoiceParameter = Extract<Parameter, { type: 'choice' }>;

/** Names that an answer's own settings use, or that every query is given. */
const RESERVED_NAMES = ['now', 'pinned_project', 'format'];

function findNameFaults(parameters: Record<string, Parameter>): { path: string[]; message: string }[] {
  const faults: { path: string[]; message: string }[] = [];
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

function findChoiceFaults(rule: ChoiceParameter, path: string[]): { path: string[]; message: string }[] {
  const choices = Object.values(rule.choices);
  if (choices.length === 0) return [{ path, message: 'needs at least one choice' }];
  if (rule.otherwise !== undefined && !Object.hasOwn(rule.choices, rule.otherwise))
    return [{ path: [...path, 'otherwise'], message: 'must be one of the choices' }];
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
