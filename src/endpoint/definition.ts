// The schema of endpoint.yaml: an endpoint, its parameters and its columns.
import * as v from 'valibot';
import { isLogKind, LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import type { KindOrAll } from '../store/log-sql.ts';
import type { BoundValues } from '../store/store.ts';
import { alert } from './alert-definition.ts';
import {
  type ChoiceParameter,
  type DefinitionProblem,
  description,
  findParameterProblem,
  flag,
  listBoundNames,
  name,
  type Parameter,
  parameter,
} from './parameter-definition.ts';

const positiveInteger = v.pipe(v.number(), v.integer('must be a whole number'), v.minValue(1));

const columnType = v.picklist(['text', 'integer', 'number', 'json', 'unix_microseconds', 'utc_datetime']);

/** A test case for `dendro endpoint test`: stored records, a request, and the rows that the endpoint must return. */
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

const rangeNames = {
  start: v.optional(name),
  end: v.optional(name),
  days: v.optional(name),
  window: v.optional(name),
  bucket: v.optional(name),
  /** The query also reads the period of the same length before the range: binds $before_start. */
  before: flag,
};

const endpointDefinition = v.strictObject({
  id: v.pipe(v.string(), v.uuid('must be a UUID'), v.toLowerCase()),
  name: v.pipe(
    v.string(),
    v.regex(ENDPOINT_NAME, 'must be dotted lower-case words, such as usage.api-counts'),
  ),
  description,
  /**
   * The log kind that the query reads; `all`: every kind; `{ parameter: NAME }`: the kind, or `all`, that the choice parameter NAME
   * selects.
   * The header Dendro-Data-Through contains the timestamp of the newest record of these kinds.
   */
  reads: v.union(
    [v.picklist([...LOG_KINDS, 'all']), v.strictObject({ parameter: name })],
    `must be a log kind (${LOG_KINDS.join(', ')}), all, or { parameter: NAME }`,
  ),
  /**
   * Declares that a token that is pinned to projects gets only records of these projects. Without a parameter `project`, the SQL
   * must use $pinned_projects. With this parameter, it must use $pinned_project, or $project if that is an exact name and not a
   * pattern. A pinned token can call only endpoints that declare this.
   */
  applies_pin: flag,
  parameters: v.record(name, parameter),
  columns: v.pipe(
    v.record(
      name,
      v.strictObject({
        type: columnType,
        description,
        /** False: the SQL never returns null in this column. For clients; it is not checked. */
        nullable: v.optional(v.boolean()),
      }),
    ),
    v.minEntries(1, 'needs at least one column'),
  ),
  /** A key of 0.2.0. */
  retention: v.optional(v.never('is part of another key now: range: { start: NAME, days: NAME }')),
  /**
   * The time range of a request. The embedded store reads only parts with records of this range; the SQL must select the range
   * itself. `start` (exclusive) and `end` (inclusive) are names of timestamp parameters. The others are names of SQL parameters that
   * a choice sets: `days` and `window` (in seconds) are the length of a range that ends now, and `bucket` (in seconds) rounds its
   * start down.
   * With `start` and `days`, the response has `Dendro-Clipped: retention` if the requested start is more than this number of days
   * before now. With `end` too, also binds $range_start, $range_end, $bucket_micros, $slice_start and $slice_end. With `before`, the query also reads the period of the same length before
   * the range, which starts at $before_start, but not before the retention.
   */
  range: v.optional(v.strictObject(rangeNames)),
  /** The SQL returns a sample of records that match the search and of others; the rows are what differs (compare-records.ts). */
  compares: flag,
  /**
   * The names of the query's conditions, in order. The explain SQL returns the number of records that remain after each of them,
   * in a column of that name (explain.ts).
   */
  explain: v.optional(v.pipe(v.array(name), v.nonEmpty('needs at least one condition'))),
  max_rows: v.optional(v.pipe(positiveInteger, v.maxValue(1000)), 1000),
  /**
   * `none`: every request runs the query. Otherwise a result is cached for `lifetime_seconds`. When it is `warming_seconds` old,
   * it is refreshed in the background, unless nobody has requested it for `lifetime_seconds`.
   */
  cache: v.union(
    [
      v.literal('none'),
      v.strictObject({ lifetime_seconds: positiveInteger, warming_seconds: positiveInteger }),
    ],
    'must be none, or lifetime_seconds and warming_seconds, whole numbers from 1',
  ),
  examples: v.optional(v.array(example), []),
  /** The rows are problems, and people are told about them. */
  alert: v.optional(alert),
});

export type EndpointDefinition = v.InferOutput<typeof endpointDefinition>;
export type Example = v.InferOutput<typeof example>;

/** Returns the definition in a parsed file, or the first problem of the file. */
export function readDefinition(
  content: unknown,
): EndpointDefinition | { readonly problem: DefinitionProblem } {
  const { success, output, issues } = v.safeParse(endpointDefinition, content, { message: describeIssue });
  if (!success) {
    const [{ path = [], message }] = issues;
    return { problem: { path: path.map(({ key }) => String(key)), message } };
  }
  const problem = findProblem(output);
  return problem === undefined ? output : { problem };
}

/** The message of an issue for which the schema defines none. */
export function describeIssue({ expected, received }: v.BaseIssue<unknown>): string {
  if (expected === 'never') return 'unknown key';
  return received === 'undefined' ? 'is missing' : `must be ${expected}, not ${received}`;
}

/** Checks what the schema cannot express, because it involves more than one key. */
function findProblem(definition: EndpointDefinition): DefinitionProblem | undefined {
  const parameterProblem = findParameterProblem(definition.parameters);
  if (parameterProblem !== undefined) return parameterProblem;
  const findings = {
    reads: findReadsProblem(definition),
    range: findRangeProblem(definition),
    parameters: findPagesProblem(definition),
  };
  for (const [key, message] of Object.entries(findings))
    if (message !== undefined) return { path: [key], message };
  return undefined;
}

function findReadsProblem({ reads, parameters }: EndpointDefinition): string | undefined {
  if (typeof reads === 'string') return undefined;
  const parameter = parameters[reads.parameter];
  if (parameter?.type !== 'choice') return `${reads.parameter} is not a parameter of type choice`;
  if (Object.keys(parameter.choices).some(choice => !isKindOrAll(choice)))
    return `the choices of ${reads.parameter} must be log kinds or all: ${LOG_KINDS.join(', ')}, all`;
  return findAbsenceProblem(reads.parameter, parameter);
}

/** Returns a problem if the choice can be absent: it is not required and has neither a default nor a fallback. */
function findAbsenceProblem(
  name: string,
  { required, default: defaultChoice, fallback }: ChoiceParameter,
): string | undefined {
  return required || defaultChoice !== undefined || fallback !== undefined
    ? undefined
    : `${name} must be required, or have a default or a fallback`;
}

function findRangeProblem({ range, parameters }: EndpointDefinition): string | undefined {
  if (range === undefined) return undefined;
  if (range.before && (range.start === undefined || range.end === undefined || range.days === undefined))
    return 'before needs start, end and days';
  for (const time of [range.start, range.end])
    if (time !== undefined && parameters[time]?.type !== 'timestamp')
      return `${time} is not a parameter of type timestamp`;
  for (const length of [range.days, range.window, range.bucket]) {
    if (length === undefined) continue;
    const [name, choice] = findNumberChoice(parameters, length) ?? [];
    if (name === undefined || choice === undefined) return `no choice has a number called ${length}`;
    const absenceProblem = findAbsenceProblem(name, choice);
    if (absenceProblem !== undefined) return absenceProblem;
  }
  return undefined;
}

/** A range with a start, an end and a length in days, which the SQL can use. */
export type BoundRange = { readonly [Name in 'start' | 'end' | 'days']: string };

export function boundRangeOf({ range }: EndpointDefinition): BoundRange | undefined {
  const { start, end, days } = range ?? {};
  return start === undefined || end === undefined || days === undefined ? undefined : { start, end, days };
}

/** The columns by which pages are ordered. */
const PAGE_COLUMNS = { id: 'text', timestamp: 'unix_microseconds' } as const;

/**
 * Whether a parameter has the type cursor. The range is then searched in slices, newest first, until the page is full (at most
 * `max_rows` rows) or the time limit of the query is reached. If there may be more rows, the response has a cursor for the next page.
 * $slice_start and $slice_end are the bounds of a slice.
 */
export function hasPages({ parameters }: EndpointDefinition): boolean {
  return Object.values(parameters).some(({ type }) => type === 'cursor');
}

function findPagesProblem(definition: EndpointDefinition): string | undefined {
  if (!hasPages(definition)) return undefined;
  const { columns, cache } = definition;
  const need = 'a parameter of type cursor needs';
  if (boundRangeOf(definition) === undefined) return `${need} the key range with start, end and days`;
  if (cache !== 'none') return `${need} cache: none`;
  const missing = Object.entries(PAGE_COLUMNS).find(([column, type]) => columns[column]?.type !== type);
  return missing === undefined ? undefined : `${need} a column ${missing[0]} of type ${missing[1]}`;
}

/** Each log kind that a request can select, and `all` if it can select all of them. */
export function listSelections({ reads, parameters }: EndpointDefinition): readonly KindOrAll[] {
  if (typeof reads === 'string') return [reads];
  const parameter = parameters[reads.parameter];
  return parameter?.type === 'choice' ? Object.keys(parameter.choices).filter(isKindOrAll) : [];
}

/** The log kind that a request reads, or `all`. */
export function selectKind({ reads }: EndpointDefinition, values: BoundValues): KindOrAll {
  const kind = typeof reads === 'string' ? reads : String(values[reads.parameter]?.value);
  return isKindOrAll(kind) ? kind : 'all';
}

/** The log kinds that a request reads. */
export function selectKinds(definition: EndpointDefinition, values: BoundValues): readonly LogKind[] {
  const kind = selectKind(definition, values);
  return kind === 'all' ? LOG_KINDS : [kind];
}

function isKindOrAll(text: string): text is KindOrAll {
  return text === 'all' || isLogKind(text);
}

export function searchParameterOf({ parameters }: EndpointDefinition): string | undefined {
  return Object.keys(parameters).find(key => parameters[key]?.type === 'search');
}

/** Finds the choice parameter whose choices set this SQL parameter to a number. */
function findNumberChoice(
  parameters: Record<string, Parameter>,
  number: string,
): [name: string, parameter: ChoiceParameter] | undefined {
  for (const [name, parameter] of Object.entries(parameters))
    if (
      parameter.type === 'choice' &&
      Object.values(parameter.choices).some(values => typeof values[number] === 'number')
    )
      return [name, parameter];
  return undefined;
}

/** The first columns of every explain SQL: timestamps, or null. */
export const EXPLAIN_TIMES = ['window_start', 'window_end', 'newest', 'oldest'] as const;

/** The names of the bounds of the range and of the slice, such as range_start, whose values depend on this parameter. */
export function listRangeNames(definition: EndpointDefinition, name: string, parameter: Parameter): string[] {
  const range = boundRangeOf(definition);
  if (range === undefined) return [];
  if (name === range.end) return ['range_end', 'slice_end'];
  return name === range.start || listBoundNames(name, parameter).includes(range.days)
    ? ['range_start', 'slice_start']
    : [];
}

/** Whether the endpoint has a parameter `project`. If not, a pinned token gets the records of all its projects. */
export function hasProject({ parameters }: EndpointDefinition): boolean {
  return Object.hasOwn(parameters, 'project');
}
