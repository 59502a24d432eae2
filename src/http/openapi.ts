// The OpenAPI 3.1 document of both listeners. openapi.yaml has everything that does not depend on the endpoints.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { ErrorCode } from '../domain/errors.ts';
import type { Endpoint } from '../endpoint/catalog.ts';
import {
  type CatalogColumn,
  type CatalogParameter,
  parameterSchema,
  parametersSchema,
  toCatalogEntry,
} from '../endpoint/catalog-entry.ts';
import type { ColumnType } from '../store/store.ts';
import { STATUS_BY_CODE } from './error-response.ts';

type Json = Record<string, unknown>;

interface Operation {
  readonly summary?: string;
  readonly description?: string | undefined;
  readonly security?: readonly Json[];
  readonly parameters?: readonly Json[];
  readonly responses: Readonly<Record<string, Json>>;
  /** The error codes that only some operations have. */
  readonly errors?: readonly ErrorCode[];
  readonly errorContent?: Json;
}

/** The content of openapi.yaml. */
interface Templates {
  readonly commonErrors: readonly ErrorCode[];
  readonly tokenErrors: readonly ErrorCode[];
  readonly errorHeaders: Readonly<Partial<Record<ErrorCode, string>>>;
  readonly internalServer: Json & { readonly variables: { readonly internal_url: Json } };
  readonly document: Json & { readonly info: Json; readonly paths: Readonly<Record<string, Json>> };
  readonly query: Operation;
  readonly queryByPost: Operation;
  readonly explain: Operation;
}

let templates: Templates | undefined;

/** By the endpoints of the catalog. Reloading the endpoints creates another list. */
const documentsWithoutToken = new WeakMap<readonly Endpoint[], Buffer>();

/**
 * The document for requests without a valid token: it has the built-in endpoints and those of packs. All responses share one copy,
 * because anyone can request it, and many responses to wrong tokens can wait in the auth throttle.
 */
export function openApiWithoutToken(version: string, endpoints: readonly Endpoint[]): Buffer {
  let document = documentsWithoutToken.get(endpoints);
  if (document === undefined) {
    const shipped = endpoints.filter(({ isShipped }) => isShipped);
    document = Buffer.from(JSON.stringify(buildOpenApi(version, shipped)));
    documentsWithoutToken.set(endpoints, document);
  }
  return document;
}

/** `internalUrl`: the URL of the internal listener; undefined: the default. */
export function buildOpenApi(version: string, endpoints: readonly Endpoint[], internalUrl?: string): Json {
  templates ??= readTemplates();
  const { document, query, queryByPost, explain, internalServer } = templates;
  const { internal_url } = internalServer.variables;
  const servers = [
    {
      ...internalServer,
      variables: { internal_url: { ...internal_url, ...(internalUrl && { default: internalUrl }) } },
    },
  ];
  const paths: Json = {};
  for (const { definition } of endpoints)
    paths[`/api/endpoints/query/${definition.name}`] = {
      get: describeQuery(query, definition),
      post: describeQueryByPost(queryByPost, query, definition),
    };
  for (const { definition, explainQuery } of endpoints)
    if (explainQuery !== undefined)
      paths[`/api/endpoints/explain/${definition.name}`] = { get: describeExplain(explain, definition) };
  for (const [path, item] of Object.entries(document.paths))
    paths[path] = 'servers' in item ? { ...item, servers } : item;
  return { ...document, info: { ...document.info, version }, paths };
}

/** Replaces the error codes of each operation by responses. */
function readTemplates(): Templates {
  const file = parse(readFileSync(join(import.meta.dirname, 'openapi.yaml'), 'utf8')) as Templates;
  const { document, query, explain } = file;
  const paths: Record<string, Json> = {};
  for (const [path, item] of Object.entries(document.paths)) {
    const entries = Object.entries(item).map(([key, value]) => [
      key,
      key === 'servers' ? value : withErrorResponses(file, value as Operation),
    ]);
    paths[path] = Object.fromEntries(entries);
  }
  return {
    ...file,
    document: { ...document, paths },
    query: withErrorResponses(file, query),
    queryByPost: withErrorResponses(file, file.queryByPost),
    explain: withErrorResponses(file, explain),
  };
}

const ERROR_CONTENT: Json = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };

/** Codes with the same status share a response. A response of the file takes precedence. */
function withErrorResponses(
  { commonErrors, tokenErrors, errorHeaders }: Templates,
  { errors = [], errorContent = ERROR_CONTENT, ...operation }: Operation,
): Operation {
  const codes = [...(operation.security === undefined ? tokenErrors : []), ...errors, ...commonErrors];
  const responses: Record<string, Json> = {};
  for (const code of codes) {
    const status = STATUS_BY_CODE[code];
    const header = errorHeaders[code];
    responses[status] = {
      description: codes.filter(other => STATUS_BY_CODE[other] === status).join(', '),
      ...(header !== undefined && { headers: { [header]: { $ref: `#/components/headers/${header}` } } }),
      content: errorContent,
    };
  }
  // Linters require both a summary and a description.
  return {
    description: operation.summary,
    ...operation,
    responses: { ...responses, ...operation.responses },
  };
}

function describeQuery(template: Operation, definition: Endpoint['definition']): Json {
  const { id, name, description, parameters } = toCatalogEntry(definition);
  return {
    operationId: name,
    tags: ['queries'],
    summary: description,
    description: `Also at /api/endpoints/query/${id}.`,
    parameters: [...parameters.map(describeParameter), ...(template.parameters ?? [])],
    responses: describeRows(template, definition),
  };
}

/** The body has the parameters that `byGet` has in the URL. */
function describeQueryByPost(
  template: Operation,
  byGet: Operation,
  definition: Endpoint['definition'],
): Json {
  const { name, description, parameters } = toCatalogEntry(definition);
  const { properties, required, ...schema } = parametersSchema(parameters);
  const general = (byGet.parameters ?? []).map(parameter => [
    parameter['name'],
    { ...(parameter['schema'] as Json), description: parameter['description'] },
  ]);
  const content = {
    schema: { ...schema, required, properties: { ...properties, ...Object.fromEntries(general) } },
  };
  return {
    operationId: `post:${name}`,
    tags: ['queries'],
    summary: description,
    description: 'Like GET, with the parameters in the body. At most 64 KiB.',
    requestBody: {
      required: true,
      content: { 'application/json': content, 'application/x-www-form-urlencoded': content },
    },
    responses: describeRows(template, definition),
  };
}

function describeRows(template: Operation, definition: Endpoint['definition']): Json {
  const { max_rows, columns } = toCatalogEntry(definition);
  const row = {
    type: 'object',
    required: columns.map(column => column.name),
    properties: Object.fromEntries(columns.map(column => [column.name, columnSchema(column)])),
  };
  const schema = {
    type: 'object',
    required: ['result'],
    properties: { result: { type: 'array', maxItems: max_rows, items: row } },
  };
  const { 200: rows, ...otherResponses } = template.responses;
  return { 200: { ...rows, content: { 'application/json': { schema } } }, ...otherResponses };
}

function describeExplain(template: Operation, definition: Endpoint['definition']): Json {
  const { id, name, parameters } = toCatalogEntry(definition);
  return {
    operationId: `explain:${name}`,
    tags: ['explanations'],
    summary: `Explains a result of ${name}: how many records remain after each condition of its query.`,
    description: `Also at /api/endpoints/explain/${id}.`,
    parameters: parameters.map(describeParameter),
    responses: template.responses,
  };
}

function describeParameter(parameter: CatalogParameter): Json {
  const { name, required, description } = parameter;
  return { name, in: 'query', required, description, schema: parameterSchema(parameter) };
}

const COLUMN_SCHEMAS: Record<ColumnType, { type: string; format?: string }> = {
  text: { type: 'string' },
  integer: { type: 'integer' },
  number: { type: 'number' },
  json: { type: 'object' },
  unix_microseconds: { type: 'integer', format: 'int64' },
  utc_datetime: { type: 'string', format: 'date-time' },
};

function columnSchema({ type, nullable, description }: CatalogColumn): Json {
  const schema = COLUMN_SCHEMAS[type];
  return { ...schema, type: nullable === false ? schema.type : [schema.type, 'null'], description };
}
