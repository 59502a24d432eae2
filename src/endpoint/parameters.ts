// Converts the string parameters of a request to the values that are bound in its SQL, as the endpoint's definition says.
import { findClosest } from '../domain/closest-name.ts';
import { DendroError } from '../domain/errors.ts';
import { MAX_BUCKETS } from '../domain/limits.ts';
import { fieldsOf, LOG_FIELDS } from '../domain/log-fields.ts';
import { findTextProblem } from '../domain/text-limit.ts';
import { parseTimestamp, TIMESTAMP_FORMS } from '../domain/timestamp.ts';
import type { Condition, RecordField } from '../store/condition.ts';
import type { BoundValue, BoundValues, TimeRange } from '../store/store.ts';
import { MICROS_PER_DAY, MICROS_PER_SECOND } from '../system/clock.ts';
import {
  boundRangeOf,
  type EndpointDefinition,
  hasProject,
  searchParameterOf,
  selectKind,
} from './definition.ts';
import { bindPosition, decodeCursor } from './pages.ts';
import type { ChoiceParameter, Parameter } from './parameter-definition.ts';
import { createQueryKey } from './query-key.ts';
import { parseFieldName, parseSearchExpression, SearchSyntaxError } from './search-expression.ts';

type MutableValues = Record<string, BoundValue>;

/** What an endpoint has to know of the token of a request. */
export interface RequestToken {
  readonly name: string;
  /** Identifies the token. Tokens take turns. */
  readonly sha256: string;
  /** The projects that the token is pinned to; undefined: any project. */
  readonly projects?: readonly string[] | undefined;
  /** The maximum tier. */
  readonly tier?: string | undefined;
  /** Whether IP addresses in results are replaced. */
  readonly redact_pii?: boolean | undefined;
}

/**
 * Binds the declared parameters and ignores all others. Throws `missing_parameter` or `invalid_parameter`. `defaultTier`: the tier of
 * a request that names none, if the endpoint has it.
 */
export function bindParameters(
  definition: EndpointDefinition,
  parameters: URLSearchParams,
  token?: RequestToken,
  defaultTier?: string,
): BoundValues {
  const bound: MutableValues = {};
  for (const [name, parameter] of Object.entries(definition.parameters)) {
    const value = readOnce(parameters, name) || findDefaultTier(parameter, defaultTier);
    if (value === '' && parameter.required) throw missing(definition, name, parameter, parameters);
    bindParameter(name, parameter, value, token?.tier, bound);
  }
  // Checked after all parameters are bound, because a search and a field depend on the log kind, and a cursor on all parameters.
  readSearch(definition, bound);
  readFields(definition, bound);
  for (const [name, { type }] of Object.entries(definition.parameters))
    if (type === 'cursor') bindCursor(definition, name, bound, token?.redact_pii);
  return bound;
}

/** The condition of the parameter of type search, if the endpoint has one. Throws `invalid_parameter`. */
export function readSearch(definition: EndpointDefinition, values: BoundValues): Condition | undefined {
  const name = searchParameterOf(definition);
  if (name === undefined) return undefined;
  const text = String(values[name]?.value ?? '');
  const kind = selectKind(definition, values);
  const parse = () => parseSearchExpression(text, kind === 'all' ? LOG_FIELDS : fieldsOf(kind));
  return withParameterName(`${name} is not a search expression`, name, parse);
}

/** The fields that the parameters of type field name. Undefined: the parameter is absent. Throws `invalid_parameter`. */
export function readFields(
  definition: EndpointDefinition,
  values: BoundValues,
): ReadonlyMap<string, RecordField | undefined> {
  const names = Object.keys(definition.parameters).filter(
    name => definition.parameters[name]?.type === 'field',
  );
  return new Map(
    names.map(name => {
      const text = values[name]?.value;
      const parse = () => parseFieldName(String(text));
      const isAbsent = text === null || text === undefined;
      return [name, isAbsent ? undefined : withParameterName(name, name, parse)];
    }),
  );
}

function withParameterName<T>(problem: string, name: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof SearchSyntaxError)) throw error;
    throw invalid(name, `${problem}: ${error.message}`);
  }
}

function bindCursor(
  definition: EndpointDefinition,
  name: string,
  bound: MutableValues,
  redacted = false,
): void {
  const text = bound[name]?.value;
  const isGiven = typeof text === 'string';
  const position = isGiven ? decodeCursor(text, createQueryKey(definition, bound)) : undefined;
  // With redaction, no cursor has an id: a forged one would tell how a hidden id is ordered.
  if (isGiven && (position === undefined || (redacted && position.id !== '')))
    throw invalid(
      name,
      `${name} is not a cursor of this query; send the value of Dendro-Next-Cursor unchanged, with the same other parameters`,
    );
  Object.assign(bound, bindPosition(definition, position));
}

/** A value for every parameter that the endpoint's SQL may use, to validate the SQL before the first request. */
export function createSampleValues(
  definition: EndpointDefinition,
  given: Readonly<Record<string, string>>,
): BoundValues {
  const parameters = new URLSearchParams();
  for (const [name, parameter] of Object.entries(definition.parameters))
    parameters.set(name, given[name] ?? createSampleValue(parameter));
  return addContextValues(definition, bindParameters(definition, parameters), 0n, undefined);
}

function createSampleValue(parameter: Parameter): string {
  switch (parameter.type) {
    case 'choice':
      return Object.keys(parameter.choices)[0] ?? '';
    case 'timestamp':
      return '2000-01-01';
    case 'integer':
      return String(parameter.default ?? Math.max(parameter.min, Math.min(parameter.max, 1)));
    case 'boolean':
      return 'true';
    case 'field':
      return 'id';
    case 'cursor':
      return ''; // absent: a cursor is valid only for the query that returned it
    default:
      return 'sample';
  }
}

/**
 * Adds $now and the pin of the token. If the definition has the key `range`, also adds the range's bounds and bucket size.
 *
 * The result may contain only records of the projects in `pin`. Without `pin`, it may contain records of any project. If the
 * endpoint has a parameter `project`, `pin` has one project, which is bound as $pinned_project; null means any project.
 * Otherwise all of `pin` is bound as $pinned_projects; an empty list means any project (ClickHouse has no list that can be null).
 */
export function addContextValues(
  definition: EndpointDefinition,
  bound: BoundValues,
  nowMicros: bigint,
  pin: readonly string[] | undefined,
): BoundValues {
  const now: BoundValue = { type: 'timestamp', value: nowMicros };
  const values = { ...bound, now, ...bindRange(definition, bound, nowMicros) };
  return hasProject(definition)
    ? { ...values, pinned_project: { type: 'text', value: pin?.[0] ?? null } }
    : { ...values, pinned_projects: { type: 'texts', value: pin ?? [] } };
}

/**
 * Without a requested end, or with one later than now, the range ends now: with an end in the far future, the buckets would be so
 * large that one contains all records. The slice is the whole range until the caller sets another one (query-slices.ts).
 */
function bindRange(definition: EndpointDefinition, bound: BoundValues, nowMicros: bigint): BoundValues {
  if (boundRangeOf(definition) === undefined) return {};
  const range = findTimeRange(definition, bound, nowMicros);
  const start = range?.start ?? 0n;
  const end = range?.end !== undefined && range.end < nowMicros ? range.end : nowMicros;
  const oldest = findOldest(definition, bound, nowMicros);
  const before = end > start ? start - (end - start) : start;
  return {
    before_start: { type: 'timestamp', value: before > oldest ? before : oldest },
    range_start: { type: 'timestamp', value: start },
    range_end: { type: 'timestamp', value: end },
    bucket_micros: { type: 'integer', value: Number(chooseBucket(start, end)) },
    slice_start: { type: 'timestamp', value: start },
    slice_end: { type: 'timestamp', value: end },
  };
}

export function readOnce(parameters: URLSearchParams, name: string): string {
  const values = parameters.getAll(name);
  if (values.length > 1) throw invalid(name, `${name} is given ${values.length} times; give it once`);
  return values[0] ?? '';
}

function missing(
  definition: EndpointDefinition,
  name: string,
  parameter: Parameter,
  parameters: URLSearchParams,
): DendroError {
  const allowed = parameter.type === 'choice' ? `, one of ${Object.keys(parameter.choices).join(', ')}` : '';
  const known = [...Object.keys(definition.parameters), 'format', 'timestamps', 'sql'];
  const unknown = [...parameters.keys()].filter(each => !known.includes(each));
  const closest = findClosest(name, unknown);
  const hint = closest === undefined ? '' : `${closest} is no parameter; did you mean ${name}? `;
  const message = `${hint}${name} is required${allowed}: ${parameter.description}`;
  return new DendroError('missing_parameter', message, { param: name });
}

function bindParameter(
  name: string,
  parameter: Parameter,
  value: string,
  maxTier: string | undefined,
  bound: MutableValues,
): void {
  switch (parameter.type) {
    case 'text':
    case 'pattern':
    case 'search':
    case 'field':
    case 'cursor':
      bound[name] = { type: 'text', value: value === '' ? null : checkText(name, value) };
      return;
    case 'timestamp':
      bound[name] = {
        type: 'timestamp',
        value: value === '' ? null : readTimestamp(name, value, parameter.accepts_microseconds),
      };
      return;
    case 'integer':
      bound[name] = {
        type: 'integer',
        value: value === '' ? (parameter.default ?? null) : readInteger(name, value, parameter),
      };
      return;
    case 'boolean':
      bound[name] = {
        type: 'boolean',
        value: value === '' ? (parameter.default ?? null) : readBoolean(name, value),
      };
      return;
    case 'choice':
      bindChoice(name, parameter, value, maxTier, bound);
  }
}

function checkText(name: string, value: string): string {
  const problem = findTextProblem(value);
  if (problem !== undefined) throw invalid(name, `${name} ${problem}`);
  return value;
}

function readInteger(
  name: string,
  value: string,
  { min, max }: { readonly min: number; readonly max: number },
): number {
  const number = Number(value);
  if (!/^[+-]?\d{1,16}$/.test(value) || number < min || number > max)
    throw invalid(name, `${name} must be a whole number from ${min} to ${max}`);
  return number;
}

function readBoolean(name: string, value: string): boolean {
  if (value !== 'true' && value !== 'false') throw invalid(name, `${name} must be true or false`);
  return value === 'true';
}

function readTimestamp(name: string, value: string, acceptsMicroseconds: boolean): bigint {
  if (acceptsMicroseconds && /^-?\d{1,18}$/.test(value)) return BigInt(value);
  // An unescaped + in a query string is decoded as a space. A space after a date comes before the time.
  const micros = parseTimestamp(checkText(name, value).replace(/([T ]\S+) (?=\d\d(?::?\d\d)?$)/i, '$1+'));
  if (micros === undefined) {
    const orMicroseconds = acceptsMicroseconds ? ', or whole Unix microseconds' : '';
    throw invalid(name, `${name} is not a timestamp; allowed: ${TIMESTAMP_FORMS}${orMicroseconds}`);
  }
  return micros;
}

function bindChoice(
  name: string,
  parameter: ChoiceParameter,
  value: string,
  maxTier: string | undefined,
  bound: MutableValues,
): void {
  // A choice has `fallback` (for an absent or unlisted value) or `default` (for an absent one), never both.
  const { choices, fallback, default: defaultChoice } = parameter;
  const substitute = fallback ?? (value === '' ? defaultChoice : undefined);
  const choice = capTier(parameter, Object.hasOwn(choices, value) ? value : substitute, maxTier);
  if (choice === undefined && value !== '')
    throw invalid(name, `${name} must be one of ${Object.keys(choices).join(', ')}`);
  bound[name] = { type: 'text', value: choice ?? null };
  const chosenValues = choice === undefined ? undefined : choices[choice];
  const [firstChoiceValues = {}] = Object.values(choices); // every choice has the same names and types
  for (const [key, firstValue] of Object.entries(firstChoiceValues))
    bound[key] = bindChoiceValue(chosenValues?.[key], firstValue);
}

/** The choices that behave as their fallback because their value is unlisted, except those that accept any value. */
export function listFallbacks({ parameters }: EndpointDefinition, given: URLSearchParams): string[] {
  return Object.entries(parameters).flatMap(([name, parameter]) => {
    if (parameter.type !== 'choice' || parameter.fallback === undefined || parameter.accepts_any) return [];
    const value = given.get(name) ?? '';
    return value === '' || Object.hasOwn(parameter.choices, value) ? [] : [name];
  });
}

/** An empty text if the parameter is no tier, or the default is none of its tiers. */
function findDefaultTier(parameter: Parameter, tier = ''): string {
  return parameter.type === 'choice' && parameter.tiers && Object.hasOwn(parameter.choices, tier) ? tier : '';
}

/** Returns the token's maximum tier if the request is for a higher one. */
function capTier(
  parameter: ChoiceParameter,
  choice: string | undefined,
  maxTier: string | undefined,
): string | undefined {
  if (!parameter.tiers || choice === undefined || maxTier === undefined) return choice;
  const tiers = Object.keys(parameter.choices);
  const maxIndex = Math.max(0, tiers.indexOf(maxTier)); // the lowest tier if the endpoint does not have maxTier
  return tiers[Math.min(tiers.indexOf(choice), maxIndex)];
}

/** If an optional choice is absent, its values are null. `firstValue` is the value of the first choice; only its type is used. */
function bindChoiceValue(value: string | number | undefined, firstValue: string | number): BoundValue {
  return typeof firstValue === 'number'
    ? { type: 'integer', value: typeof value === 'number' ? value : null }
    : { type: 'text', value: typeof value === 'string' ? value : null };
}

/** Reads the parameter `timestamps`, which every endpoint has: whether timestamps are returned as ISO 8601 strings. */
export function readIsoTimestamps(parameters: URLSearchParams): boolean {
  const values = parameters.getAll('timestamps').filter(value => value !== '');
  if (values.length === 0) return false;
  if (values.length > 1 || values[0] !== 'iso')
    throw invalid('timestamps', 'the only allowed value of timestamps is iso, given at most once');
  return true;
}

function invalid(param: string, message: string): DendroError {
  return new DendroError('invalid_parameter', message, { param });
}

/**
 * The time range of a request, for an endpoint whose endpoint.yaml has the key `range`. Its start is the latest of the requested
 * start, the start of the retention period and the start of the window.
 */
export function findTimeRange(
  { range }: EndpointDefinition,
  values: BoundValues,
  now: bigint,
): TimeRange | undefined {
  if (range === undefined) return undefined;
  const number = (name: string | undefined) => BigInt(Number(values[name ?? '']?.value ?? 0));
  const starts = [toMicros(values, range.start)];
  if (range.days !== undefined) starts.push(now - number(range.days) * MICROS_PER_DAY);
  if (range.window !== undefined)
    starts.push(now - (number(range.window) + number(range.bucket)) * MICROS_PER_SECOND);
  const start = starts.reduce((latest, each) =>
    latest === undefined || (each !== undefined && each > latest) ? each : latest,
  );
  return { start, end: toMicros(values, range.end) };
}

/** The time range whose records the query of a request reads. */
export function findReadRange(
  definition: EndpointDefinition,
  values: BoundValues,
  now: bigint,
): TimeRange | undefined {
  const range = findTimeRange(definition, values, now);
  return definition.range?.before ? { start: findOldest(definition, values, now) } : range;
}

/** Before this time, the retention of the tier ends. */
function findOldest({ range }: EndpointDefinition, values: BoundValues, now: bigint): bigint {
  return now - BigInt(Number(values[range?.days ?? '']?.value ?? 0)) * MICROS_PER_DAY;
}

function toMicros(values: BoundValues, name: string | undefined): bigint | undefined {
  const bound = values[name ?? ''];
  return bound?.type === 'timestamp' ? (bound.value ?? undefined) : undefined;
}

const MINUTE = 60n * MICROS_PER_SECOND;
const HOUR = 60n * MINUTE;

/** The sizes that a bucket can have, in microseconds. */
const BUCKET_STEPS: readonly bigint[] = [
  ...[1n, 10n, 100n, 1_000n, 10_000n, 100_000n].flatMap(unit => [unit, 2n * unit, 5n * unit]),
  ...[1n, 2n, 5n, 10n, 15n, 30n].map(count => count * MICROS_PER_SECOND),
  ...[1n, 2n, 5n, 10n, 15n, 30n].map(count => count * MINUTE),
  ...[1n, 2n, 3n, 6n, 12n].map(count => count * HOUR),
  ...[1n, 10n, 100n, 1_000n, 10_000n].flatMap(unit =>
    [unit, 2n * unit, 5n * unit].map(count => count * MICROS_PER_DAY),
  ),
];
const LARGEST_STEP = 100_000n * MICROS_PER_DAY;

/** The smallest step with which the range touches at most 120 buckets. Buckets start at multiples of their size. */
function chooseBucket(start: bigint, end: bigint): bigint {
  const first = start + 1n; // the start is exclusive
  return BUCKET_STEPS.find(step => end / step - first / step < MAX_BUCKETS) ?? LARGEST_STEP;
}
