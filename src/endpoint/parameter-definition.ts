// The schema of the parameters in endpoint.yaml, and the names of the values that they bind.
import * as v from 'valibot';

export const description = v.pipe(v.string(), v.nonEmpty('must not be empty'));
export const flag = v.optional(v.boolean(), false);
const safeInteger = v.pipe(
  v.number(),
  v.safeInteger(`must be a whole number from ${Number.MIN_SAFE_INTEGER} to ${Number.MAX_SAFE_INTEGER}`),
);

/** The name of an SQL parameter or a column. */
export const name = v.pipe(
  v.string(),
  v.regex(/^[a-z][a-z0-9_]*$/, 'must be lower-case letters, digits and underscores, and begin with a letter'),
);

const choiceValue = v.union([v.string(), safeInteger], 'must be a text or a whole number');

export const parameter = v.variant('type', [
  /** Any text of up to 1,024 characters without NUL. Bound as text. */
  v.strictObject({ type: v.literal('text'), required: flag, description }),
  /** Text that is a regular expression in RE2 syntax. Bound as text. */
  v.strictObject({ type: v.literal('pattern'), required: flag, description }),
  /** An ISO 8601 calendar date, date-time or month; with `accepts_microseconds`, also whole Unix microseconds. Bound as a timestamp. */
  v.strictObject({
    type: v.literal('timestamp'),
    required: flag,
    accepts_microseconds: flag,
    description,
  }),
  /** A whole number from `min` to `max`. Bound as an integer. */
  v.strictObject({
    type: v.literal('integer'),
    required: flag,
    min: v.optional(safeInteger, Number.MIN_SAFE_INTEGER),
    max: v.optional(safeInteger, Number.MAX_SAFE_INTEGER),
    /** The value of an absent parameter. */
    default: v.optional(safeInteger),
    description,
  }),
  /** `true` or `false`. Bound as a boolean. */
  v.strictObject({
    type: v.literal('boolean'),
    required: flag,
    /** The value of an absent parameter. */
    default: v.optional(v.boolean()),
    description,
  }),
  /** A search expression (search-expression.ts). The SQL uses its condition as {{search}}. */
  v.strictObject({
    type: v.literal('search'),
    required: flag,
    /** The SQL reads only records that match. The embedded store may then skip others, with its text index. */
    filters: flag,
    description,
  }),
  /** The name of a field, as in a search expression. The SQL uses the value of that field as {{NAME}}, a text. */
  v.strictObject({ type: v.literal('field'), required: flag, description }),
  /** Where a page starts (pages.ts). Bound as a timestamp, an id, the number of records to skip and the size of the first slice. */
  v.strictObject({
    type: v.literal('cursor'),
    required: v.optional(v.literal(false, 'a cursor cannot be required'), false),
    description,
  }),
  /** One of a list. Bound as text. */
  v.strictObject({
    type: v.literal('choice'),
    required: flag,
    /** Each choice sets further SQL parameters. Every choice of a parameter must set the same ones. */
    choices: v.record(v.string(), v.record(name, choiceValue)),
    /** The choice for an absent parameter and for unlisted values. Without a fallback, an unlisted value is an error. */
    fallback: v.optional(v.string()),
    /** Needs a fallback. An unlisted value is as good as a listed one: without this, Dendro-Ignored names its parameter. */
    accepts_any: flag,
    /** The choice for an absent parameter. An unlisted value is an error. */
    default: v.optional(v.string()),
    /**
     * The choices are tiers, from lowest to highest. A token can have a maximum tier. A request for a higher tier gets
     * the maximum.
     */
    tiers: flag,
    description,
  }),
]);

export type Parameter = v.InferOutput<typeof parameter>;
export type ChoiceParameter = Extract<Parameter, { type: 'choice' }>;

/** What is wrong with a definition, and where in the file. */
export interface DefinitionProblem {
  readonly path: readonly string[];
  readonly message: string;
}

/**
 * Neither a parameter nor an SQL parameter that a choice sets can have one of these names. Dendro binds them itself, except for
 * `format` and `timestamps`, which select the form of the response.
 */
const RESERVED_NAMES = [
  'now',
  'pinned_project',
  'pinned_projects',
  'range_start',
  'range_end',
  'before_start',
  'bucket_micros',
  'slice_start',
  'slice_end',
  'format',
  'timestamps',
];

export function findParameterProblem(parameters: Record<string, Parameter>): DefinitionProblem | undefined {
  const usedNames = new Set(RESERVED_NAMES);
  for (const [parameterName, parameter] of Object.entries(parameters)) {
    const path = ['parameters', parameterName];
    for (const boundName of listBoundNames(parameterName, parameter)) {
      if (usedNames.has(boundName))
        return { path, message: `the name ${boundName} is reserved or already used` };
      usedNames.add(boundName);
    }
    const problem =
      parameter.type === 'choice'
        ? findChoiceProblem(parameter, path)
        : parameter.type === 'integer'
          ? findIntegerProblem(parameter, path)
          : undefined;
    if (problem !== undefined) return problem;
  }
  for (const type of ['search', 'cursor'])
    if (Object.values(parameters).filter(parameter => parameter.type === type).length > 1)
      return { path: ['parameters'], message: `only one parameter can have the type ${type}` };
  return undefined;
}

function findIntegerProblem(
  { min, max, default: defaultValue }: Extract<Parameter, { type: 'integer' }>,
  path: string[],
): DefinitionProblem | undefined {
  if (min > max) return { path, message: 'min must not be larger than max' };
  return defaultValue !== undefined && (defaultValue < min || defaultValue > max)
    ? { path: [...path, 'default'], message: 'must be a number from min to max' }
    : undefined;
}

function findChoiceProblem(
  { choices, fallback, accepts_any, default: defaultChoice, tiers }: ChoiceParameter,
  path: string[],
): DefinitionProblem | undefined {
  const valuesByChoice = Object.values(choices);
  if (valuesByChoice.length === 0) return { path, message: 'needs at least one choice' };
  // JavaScript moves keys that are whole numbers to the front of an object.
  if (tiers && Object.keys(choices).some(name => /^\d+$/.test(name)))
    return { path, message: 'a tier cannot be named by a number: the order of the tiers would be lost' };
  if (fallback !== undefined && !Object.hasOwn(choices, fallback))
    return { path: [...path, 'fallback'], message: 'must be one of the choices' };
  if (defaultChoice !== undefined && !Object.hasOwn(choices, defaultChoice))
    return { path: [...path, 'default'], message: 'must be one of the choices' };
  if (defaultChoice !== undefined && fallback !== undefined)
    return {
      path,
      message: 'fallback applies to an absent parameter too; declare either fallback or default',
    };
  if (accepts_any && fallback === undefined)
    return { path: [...path, 'accepts_any'], message: 'needs a fallback' };
  return new Set(valuesByChoice.map(describeTypes)).size > 1
    ? { path, message: 'every choice must have values of the same names and types' }
    : undefined;
}

function describeTypes(values: Record<string, string | number>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}:${typeof value}`)
    .sort()
    .join();
}

/** The names of the SQL parameters that a parameter sets: its own and, for a choice or a cursor, further ones. */
export function listBoundNames(name: string, parameter: Parameter): string[] {
  switch (parameter.type) {
    case 'choice':
      return [name, ...Object.keys(Object.values(parameter.choices)[0] ?? {})];
    case 'cursor':
      return [name, ...Object.values(cursorValueNames(name))];
    default:
      return [name];
  }
}

export function cursorValueNames(
  parameterName: string,
): Record<'timestamp' | 'id' | 'skip' | 'slice', string> {
  return {
    timestamp: `${parameterName}_timestamp`,
    id: `${parameterName}_id`,
    skip: `${parameterName}_skip`,
    slice: `${parameterName}_slice_seconds`,
  };
}
