// Converts the string parameters of a request to the values bound in its SQL, by the rules of the endpoint's definition.
import { DendroError } from '../domain/errors.ts';
import { parseTimestamp, TIMESTAMP_FORMS } from '../domain/timestamp.ts';
import type { BoundValue, BoundValues } from '../store/store.ts';
import type { ChoiceParameter, EndpointDefinition, Parameter } from './definition.ts';

export const MAX_VALUE_LENGTH = 1024;

type MutableValues = Record<string, BoundValue>;

/** Ignores parameters that the definition does not declare. Throws `missing_parameter` or `invalid_parameter`. */
export function bindParameters(
  definition: EndpointDefinition,
  parameters: URLSearchParams,
  maxTier?: string,
): BoundValues {
  const bound: MutableValues = {};
  for (const [name, rule] of Object.entries(definition.parameters))
    bindParameter(name, rule, readOnce(parameters, name), maxTier, bound);
  return bound;
}

/** A value for every name that the endpoint's SQL may use, to validate the SQL before the first request. */
export function sampleValues(definition: EndpointDefinition): BoundValues {
  const parameters = new URLSearchParams();
  for (const [name, rule] of Object.entries(definition.parameters)) parameters.set(name, sampleValue(rule));
  return addContextValues(bindParameters(definition, parameters), 0n, undefined);
}

function sampleValue(rule: Parameter): string {
  if (rule.type === 'choice') return Object.keys(rule.choices)[0] ?? '';
  return rule.type === 'timestamp' ? '2000-01-01' : 'sample';
}

/** Adds the values that every query may use: $now and $pinned_project (null unless the token is pinned). */
export function addContextValues(
  bound: BoundValues,
  nowMicros: bigint,
  pinnedProject: string | undefined,
): BoundValues {
  return {
    ...bound,
    now: { type: 'timestamp', value: nowMicros },
    pinned_project: { type: 'text', value: pinnedProject ?? null },
  };
}

function readOnce(parameters: URLSearchParams, name: string): string {
  const values = parameters.getAll(name);
  if (values.length > 1) throw invalid(name, `${name} is given ${values.length} times; give it once`);
  return values[0] ?? '';
}

function bindParameter(
  name: string,
  rule: Parameter,
  value: string,
  maxTier: string | undefined,
  bound: MutableValues,
): void {
  if (value === '' && rule.required) {
    const allowed = rule.type === 'choice' ? `, one of ${Object.keys(rule.choices).join(', ')}` : '';
    throw new DendroError('missing_parameter', `${name} is required${allowed}: ${rule.description}`, {
      param: name,
    });
  }
  switch (rule.type) {
    case 'text':
    case 'pattern':
      bound[name] = { type: 'text', value: value === '' ? null : checkText(name, value) };
      return;
    case 'timestamp':
      bound[name] = { type: 'timestamp', value: value === '' ? null : readTimestamp(name, value) };
      return;
    case 'choice':
      bindChoice(name, rule, value, maxTier, bound);
  }
}

function checkText(name: string, value: string): string {
  if (value.includes('\0')) throw invalid(name, `${name} contains a NUL character`);
  // The limit counts code points: a character outside the Basic Multilingual Plane counts as one.
  if (value.length > MAX_VALUE_LENGTH && [...value].length > MAX_VALUE_LENGTH)
    throw invalid(name, `${name} is too long: at most ${MAX_VALUE_LENGTH} characters are allowed`);
  return value;
}

function readTimestamp(name: string, value: string): bigint {
  // An unescaped + in a query string is decoded as a space.
  const micros = parseTimestamp(checkText(name, value).replace(/ (?=\d\d:\d\d$)/, '+'));
  if (micros === undefined) throw invalid(name, `${name} is not a timestamp; allowed is ${TIMESTAMP_FORMS}`);
  return micros;
}

function bindChoice(
  name: string,
  rule: ChoiceParameter,
  value: string,
  maxTier: string | undefined,
  bound: MutableValues,
): void {
  const choice = capTier(rule, Object.hasOwn(rule.choices, value) ? value : rule.fallback, maxTier);
  if (choice === undefined && value !== '')
    throw invalid(name, `${name} must be one of ${Object.keys(rule.choices).join(', ')}`);
  const [anyChoice = {}] = Object.values(rule.choices);
  const choiceValues = choice === undefined ? undefined : rule.choices[choice];
  bound[name] = { type: 'text', value: choice ?? null };
  for (const [key, example] of Object.entries(anyChoice))
    bound[key] = bindChoiceValue(choiceValues?.[key], example);
}

function capTier(
  rule: ChoiceParameter,
  choice: string | undefined,
  maxTier: string | undefined,
): string | undefined {
  if (!rule.tiers || choice === undefined || maxTier === undefined) return choice;
  const tiers = Object.keys(rule.choices);
  const limit = Math.max(0, tiers.indexOf(maxTier)); // a token whose tier this endpoint lacks gets the lowest
  return tiers[Math.min(tiers.indexOf(choice), limit)];
}

/** The values of an absent optional choice are null, with the type of the other choices. */
function bindChoiceValue(value: string | number | undefined, example: string | number): BoundValue {
  return typeof example === 'number'
    ? { type: 'integer', value: typeof value === 'number' ? value : null }
    : { type: 'text', value: typeof value === 'string' ? value : null };
}

function invalid(param: string, message: string): DendroError {
  return new DendroError('invalid_parameter', message, { param });
}
