// The schema of endpoint.yaml: an endpoint, its parameters and its columns.
import * as v from 'valibot';
import { LOG_KINDS } from '../domain/log-columns.ts';

const description = v.pipe(v.string(), v.nonEmpty('must not be empty'));
const flag = v.optional(v.boolean(), false);
const positiveInteger = v.pipe(v.number(), v.integer('must be a whole number'), v.minValue(1));

/** The name of an SQL parameter or a column. */
const name = v.pipe(
  v.string(),
  v.regex(/^[a-z][a-z0-9_]*$/, 'must be lower-case letters, digits and underscores'),
);

const choiceValue = v.union(
  [v.string(), v.pipe(v.number(), v.integer())],
  'must be a text or a whole number',
);

const parameter = v.variant('type', [
  /** Any text of up to 1,024 characters without NUL. Bound as text. */
  v.strictObject({ type: v.literal('text'), required: flag, description }),
  /** Text that is a regular expression in RE2 syntax. Bound as text. */
  v.strictObject({ type: v.literal('pattern'), required: flag, description }),
  /** An RFC 3339 date-time or a date. Bound as a timestamp. */
  v.strictObject({ type: v.literal('timestamp'), required: flag, description }),
  /** One of a list. Bound as text. */
  v.strictObject({
    type: v.literal('choice'),
    required: flag,
    /** Each choice sets further SQL parameters. Every choice of a parameter must set the same ones. */
    choices: v.record(v.string(), v.record(name, choiceValue)),
    /** The choice for an absent parameter and for unlisted values. Without a fallback, an unlisted value is an error. */
    fallback: v.optional(v.string()),
    /**
     * The choices are tiers, from lowest to highest. A token can have a maximum tier. A request for a higher tier gets
     * the maximum.
     */
    tiers: flag,
    description,
  }),
]);

const columnType = v.picklist(['text', 'integer', 'number', 'json', 'unix_microseconds', 'utc_datetime']);

/** What the endpoint returns for these records, for `dendro endpoint test`. */
const example = v.strictObject({
  title: description,
  /** The time of the request. */
  now: v.string(),
  /** By log kind, as senders post them. */
  records: v.record(v.picklist(LOG_KINDS), v.array(v.unknown())),
  parameters: v.optional(v.record(name, v.union([v.string(), v.number(), v.boolean()])), {}),
  /** As the API returns them. */
  rows: v.array(v.record(v.string(), v.unknown())),
});

export const ENDPOINT_NAME = /^[a-z0-9][a-z0-9_-]*(\.[a-z0-9_-]+)*$/;

const endpointDefinition = v.strictObject({
  id: v.pipe(v.string(), v.uuid('must be a UUID'), v.toLowerCase()),
  name: v.pipe(
    v.string(),
    v.regex(ENDPOINT_NAME, 'must be dotted lower-case words, such as usage.api-counts'),
  ),
  description,
  /** The log kind that the query reads. The header Dendro-Data-Through contains the timestamp of its newest record. */
  reads: v.picklist(LOG_KINDS),
  /**
   * The SQL returns a token that is pinned to projects only records of these: of `$pinned_project` if the endpoint has a
   * parameter `project`, otherwise of `$pinned_projects`. A pinned token can only call endpoints that declare this.
   */
  applies_pin: flag,
  parameters: v.record(name, parameter),
  columns: v.record(
    name,
    v.strictObject({
      type: columnType,
      description,
      /** False: the SQL never returns null in this column. For clients; it is not checked. */
      nullable: v.optional(v.boolean()),
    }),
  ),
  /**
   * Says when the response has `Dendro-Clipped: retention`: if the timestamp parameter `start` is more than `days` (a choice
   * value) before now. It does not limit the query; the SQL must do that.
   */
  retention: v.optional(v.strictObject({ start: name, days: name })),
  /**
   * The names of the query's conditions, in order. The explain SQL returns the number of records that remain after each of them,
   * in a column of that name (explain.ts).
   */
  explain: v.optional(v.pipe(v.array(name), v.nonEmpty('needs at least one condition'))),
  max_rows: v.optional(v.pipe(positiveInteger, v.maxValue(1000)), 1000),
  /**
   * `none`: every request runs the query. Otherwise a result is cached for `lifetime_seconds` and refreshed in the
   * background every `warming_seconds`.
   */
  cache: v.union(
    [
      v.literal('none'),
      v.strictObject({ lifetime_seconds: positiveInteger, warming_seconds: positiveInteger }),
    ],
    'must be none, or lifetime_seconds and warming_seconds, whole numbers from 1',
  ),
  examples: v.optional(v.array(example), []),
});

export type EndpointDefinition = v.InferOutput<typeof endpointDefinition>;
export type Example = v.InferOutput<typeof example>;
export type Parameter = v.InferOutput<typeof parameter>;
export type ChoiceParameter = Extract<Parameter, { type: 'choice' }>;

/** What is wrong with a definition, and where in the file. */
export interface DefinitionProblem {
  readonly path: readonly string[];
  readonly message: string;
}

/** Returns the definition in a parsed file, or the first problem of the file. */
export function readDefinition(
  content: unknown,
): EndpointDefinition | { readonly problem: DefinitionProblem } {
  const forbiddenKey = findForbiddenKey(content);
  if (forbiddenKey !== undefined) return { problem: forbiddenKey };
  const { success, output, issues } = v.safeParse(endpointDefinition, content, { message: describeIssue });
  if (!success) return { problem: toProblem(issues[0]) };
  const problem = findProblem(output);
  return problem === undefined ? output : { problem };
}

/** Libraries ignore these keys without an error, because every JavaScript object inherits the names. */
const FORBIDDEN_KEYS = ['__proto__', 'prototype', 'constructor'];

function findForbiddenKey(content: unknown, path: readonly string[] = []): DefinitionProblem | undefined {
  if (typeof content !== 'object' || content === null) return undefined;
  for (const [key, value] of Object.entries(content)) {
    const keyPath = [...path, key];
    const problem = FORBIDDEN_KEYS.includes(key)
      ? { path: keyPath, message: 'this name is not allowed' }
      : findForbiddenKey(value, keyPath);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** Keys of earlier versions and their new names, for the error message. */
const RENAMED_KEYS = new Map([['otherwise', 'fallback']]);

function toProblem({ path, message, expected }: v.BaseIssue<unknown>): DefinitionProblem {
  const keys = path?.map(({ key }) => String(key)) ?? [];
  const newKey = expected === 'never' ? RENAMED_KEYS.get(keys.at(-1) ?? '') : undefined;
  return { path: keys, message: newKey === undefined ? message : `this key is now called ${newKey}` };
}

/** The message of an issue for which the schema defines none. */
function describeIssue({ expected, received }: v.BaseIssue<unknown>): string {
  if (expected === 'never') return 'unknown key';
  return received === 'undefined' ? 'is missing' : `must be ${expected}, not ${received}`;
}

/** Checks what the schema cannot express, because it involves more than one key. */
function findProblem(definition: EndpointDefinition): DefinitionProblem | undefined {
  const { parameters, retention, explain, columns } = definition;
  const [parameterProblem] = findParameterProblems(parameters);
  if (parameterProblem !== undefined) return parameterProblem;
  const retentionProblem = findRetentionProblem(parameters, retention);
  if (retentionProblem !== undefined) return { path: ['retention'], message: retentionProblem };
  const explainProblem = findExplainProblem(explain);
  if (explainProblem !== undefined) return { path: ['explain'], message: explainProblem };
  return Object.keys(columns).length === 0
    ? { path: ['columns'], message: 'needs at least one column' }
    : undefined;
}

/** `now` and `pinned_project` or `pinned_projects` are bound in every query; `format` and `timestamps` select the form of the response. */
const RESERVED_NAMES = ['now', 'pinned_project', 'pinned_projects', 'format', 'timestamps'];

function findParameterProblems(parameters: Record<string, Parameter>): DefinitionProblem[] {
  const problems: DefinitionProblem[] = [];
  const usedNames = new Set(RESERVED_NAMES);
  for (const [parameterName, parameter] of Object.entries(parameters)) {
    const path = ['parameters', parameterName];
    for (const boundName of listBoundNames(parameterName, parameter)) {
      if (usedNames.has(boundName))
        problems.push({ path, message: `the name ${boundName} is reserved or already used` });
      usedNames.add(boundName);
    }
    if (parameter.type === 'choice') problems.push(...findChoiceProblems(parameter, path));
  }
  return problems;
}

function findRetentionProblem(
  parameters: Record<string, Parameter>,
  retention: { start: string; days: string } | undefined,
): string | undefined {
  if (retention === undefined) return undefined;
  if (parameters[retention.start]?.type !== 'timestamp')
    return `${retention.start} is not a parameter of type timestamp`;
  const hasDays = Object.values(parameters).some(
    parameter =>
      parameter.type === 'choice' &&
      Object.values(parameter.choices).some(values => typeof values[retention.days] === 'number'),
  );
  return hasDays ? undefined : `no choice has a number called ${retention.days}`;
}

/** The first columns of every explain SQL: timestamps, or null. */
export const EXPLAIN_TIMES = ['window_start', 'window_end', 'newest', 'oldest'] as const;

function findExplainProblem(conditions: readonly string[] = []): string | undefined {
  const usedNames = new Set<string>(EXPLAIN_TIMES);
  for (const condition of conditions) {
    if (usedNames.has(condition)) return `the name ${condition} is reserved or already used`;
    usedNames.add(condition);
  }
  return undefined;
}

function findChoiceProblems(
  { choices, fallback, tiers }: ChoiceParameter,
  path: string[],
): DefinitionProblem[] {
  const valuesByChoice = Object.values(choices);
  if (valuesByChoice.length === 0) return [{ path, message: 'needs at least one choice' }];
  // JavaScript moves keys that are whole numbers to the front of an object.
  if (tiers && Object.keys(choices).some(name => /^\d+$/.test(name)))
    return [{ path, message: 'a tier cannot be named by a number: the order of the tiers would be lost' }];
  if (fallback !== undefined && !Object.hasOwn(choices, fallback))
    return [{ path: [...path, 'fallback'], message: 'must be one of the choices' }];
  const signatures = valuesByChoice.map(describeTypes);
  if (new Set(signatures).size > 1)
    return [{ path, message: 'every choice must have values of the same names and types' }];
  return [];
}

function describeTypes(values: Record<string, string | number>): string {
  return Object.entries(values)
    .map(([key, value]) => `${key}:${typeof value}`)
    .sort()
    .join();
}

/** The names of the SQL parameters that a parameter sets: its own, and those of the values of its choices. */
export function listBoundNames(name: string, parameter: Parameter): string[] {
  if (parameter.type !== 'choice') return [name];
  return [name, ...Object.keys(Object.values(parameter.choices)[0] ?? {})];
}

/** Whether a request names its project. If not, a pinned token gets the records of all its projects. */
export function hasProject({ parameters }: EndpointDefinition): boolean {
  return Object.hasOwn(parameters, 'project');
}
