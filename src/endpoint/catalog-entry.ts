// An endpoint as GET /api/endpoints describes it. OpenAPI, `dendro types`, `dendro mcp` and clients use this form, so the same
// code can describe an endpoint that this program has loaded and one that a running server returned.
import { MAX_VALUE_LENGTH } from '../domain/limits.ts';
import { fieldsOf, LOG_FIELDS } from '../domain/log-fields.ts';
import { SEARCH_COLUMNS } from '../store/condition.ts';
import { type EndpointDefinition, listSelections } from './definition.ts';
import type { Parameter } from './parameter-definition.ts';

export interface CatalogEntry {
  readonly id: string;
  readonly name: string;
  readonly description: string;
  readonly max_rows: number;
  readonly cache: { readonly lifetime_seconds: number; readonly warming_seconds: number | null };
  readonly sandboxing: false;
  readonly parameters: readonly CatalogParameter[];
  readonly columns: readonly CatalogColumn[];
  /** Only if the endpoint declares an alert. */
  readonly alert?: { readonly every_seconds: number; readonly severity: string };
}

export interface CatalogParameter {
  readonly name: string;
  readonly type: Parameter['type'];
  readonly required: boolean;
  readonly description: string;
  /** The choices, their values and the fallback; only for the type `choice`. */
  readonly choices?: readonly string[];
  readonly choice_values?: Readonly<Record<string, Readonly<Record<string, string | number>>>>;
  readonly fallback?: string | null;
  /** The value of an absent parameter. Only for the types `choice`, `integer` and `boolean`, if a default is declared. */
  readonly default?: string | number | boolean;
  /** Only for the type `integer`. */
  readonly min?: number;
  readonly max?: number;
  /** Only for the type `timestamp`: whole Unix microseconds are allowed too. */
  readonly accepts_microseconds?: true;
  /** Only for the types `search` and `field`: the searchable fields by log kind. Columns and keys of the metadata can be used too. */
  readonly fields?: Readonly<Record<string, readonly string[]>>;
}

export interface CatalogColumn {
  readonly name: string;
  readonly type: EndpointDefinition['columns'][string]['type'];
  readonly description: string;
  /** False: a value is never null. */
  readonly nullable?: boolean | undefined;
}

export function toCatalogEntry(definition: EndpointDefinition): CatalogEntry {
  const { id, name, description, max_rows, cache, parameters, columns, alert } = definition;
  return {
    id,
    name,
    description,
    max_rows,
    cache: cache === 'none' ? { lifetime_seconds: 0, warming_seconds: null } : cache,
    sandboxing: false, // clients of this API expect the field; a caller can never pass SQL of its own
    parameters: Object.entries(parameters).map(([key, parameter]) =>
      toCatalogParameter(definition, key, parameter),
    ),
    columns: Object.entries(columns).map(([key, column]) => ({ name: key, ...column })),
    ...(alert && { alert: { every_seconds: alert.every / 1000, severity: alert.severity } }),
  };
}

function toCatalogParameter(
  definition: EndpointDefinition,
  name: string,
  parameter: Parameter,
): CatalogParameter {
  const { type, required, description } = parameter;
  const common = { name, type, required, description };
  switch (parameter.type) {
    case 'choice':
      return {
        ...common,
        choices: Object.keys(parameter.choices),
        choice_values: parameter.choices,
        fallback: parameter.fallback ?? null,
        ...defaultOf(parameter),
      };
    case 'integer':
      return { ...common, min: parameter.min, max: parameter.max, ...defaultOf(parameter) };
    case 'boolean':
      return { ...common, ...defaultOf(parameter) };
    case 'timestamp':
      return { ...common, ...(parameter.accepts_microseconds && { accepts_microseconds: true }) };
    case 'search':
    case 'field': {
      const selections = listSelections(definition);
      const fields = selections.map(kind => [kind, kind === 'all' ? LOG_FIELDS : fieldsOf(kind)]);
      return { ...common, fields: Object.fromEntries(fields) };
    }
    default:
      return common;
  }
}

function defaultOf<T>(parameter: { readonly default?: T | undefined }): { readonly default?: T } {
  return parameter.default === undefined ? {} : { default: parameter.default };
}

/** The JSON Schema of an object with all parameters, for OpenAPI and for the tools of `dendro mcp`. */
export function parametersSchema(parameters: readonly CatalogParameter[]) {
  return {
    type: 'object',
    properties: Object.fromEntries(
      parameters.map(parameter => {
        const { description: rule = '', ...schema } = parameterSchema(parameter);
        return [parameter.name, { ...schema, description: `${parameter.description} ${rule}`.trim() }];
      }),
    ),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  };
}

const FIELD_NAMES = `Fields: ${[...LOG_FIELDS, ...SEARCH_COLUMNS, 'trace_id'].join(', ')}, any path of keys in the metadata such as request.headers.cf_ray or labels."app/name", and metadata.KEY for one key.`;

/** The JSON Schema of a parameter. */
export function parameterSchema(parameter: CatalogParameter): Record<string, unknown> {
  const { type, choices = [], fallback, min, max } = parameter;
  const defaultValue = parameter.default === undefined ? {} : { default: parameter.default };
  switch (type) {
    case 'pattern':
      return { type: 'string', maxLength: MAX_VALUE_LENGTH, format: 'regex' };
    case 'timestamp':
      return {
        type: parameter.accepts_microseconds ? ['string', 'integer'] : 'string',
        description: `ISO 8601 calendar date, date-time or month; UTC unless it has an offset.${parameter.accepts_microseconds ? ' Or whole Unix microseconds.' : ''}`,
      };
    case 'choice':
      // With a fallback every value is valid, so the schema can only give examples.
      return fallback === undefined || fallback === null
        ? { type: 'string', enum: choices, ...defaultValue }
        : { type: 'string', examples: choices, default: fallback };
    case 'integer':
      return { type: 'integer', minimum: min, maximum: max, ...defaultValue };
    case 'boolean':
      return { type: 'boolean', ...defaultValue };
    case 'search':
      return {
        type: 'string',
        maxLength: MAX_VALUE_LENGTH,
        examples: ['timeout -retry status:>=500', '(level:error OR exists:parsed.detail) path:/rest/v1*'],
        description: `Words, "phrases", field:value with * as a wildcard, comparisons (>=500, 500..599), exists:field, - to exclude, OR and parentheses. ${FIELD_NAMES}`,
      };
    case 'field':
      return { type: 'string', maxLength: MAX_VALUE_LENGTH, description: FIELD_NAMES };
    default:
      return { type: 'string', maxLength: MAX_VALUE_LENGTH };
  }
}
