// Generates the OpenAPI 3.1 document from the endpoint definitions. The document also has the routes of the internal listener.

import type { Endpoint } from '../endpoint/catalog.ts';
import { type CatalogColumn, type CatalogParameter, toCatalogEntry } from '../endpoint/catalog-entry.ts';
import { RESULT_FORMATS } from '../endpoint/encode-rows.ts';
import { parameterSchema } from '../endpoint/parameter-schema.ts';
import type { ColumnType } from '../store/store.ts';
import { CONTENT_TYPES } from './content-negotiation.ts';
import { INTERNAL_PATHS } from './openapi-internal.ts';
import {
  errorResponses,
  HEADER_COMPONENTS,
  type Json,
  jsonResult,
  RESULT_HEADERS,
  refsToHeaders,
  tokenErrors,
} from './openapi-responses.ts';
import { SCHEMA_COMPONENTS } from './openapi-schemas.ts';

export function buildOpenApi(version: string, endpoints: readonly Endpoint[]): Json {
  const queryPaths = endpoints.map(endpoint => [
    `/api/endpoints/query/${endpoint.definition.name}`,
    { get: describeQuery(endpoint) },
  ]);
  const explainPaths = endpoints
    .filter(({ explainQuery }) => explainQuery !== undefined)
    .map(endpoint => [
      `/api/endpoints/explain/${endpoint.definition.name}`,
      { get: describeExplain(endpoint) },
    ]);
  return {
    openapi: '3.1.0',
    info: {
      title: 'Dendro',
      version,
      description: 'Saved log queries, served as HTTP endpoints.',
      license: { name: 'Apache-2.0', identifier: 'Apache-2.0' },
    },
    servers: [{ url: '/', description: 'The public listener, which serves this document.' }],
    security: [{ apiKey: [] }, { bearer: [] }],
    paths: { ...Object.fromEntries([...queryPaths, ...explainPaths]), ...FIXED_PATHS, ...INTERNAL_PATHS },
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
      headers: HEADER_COMPONENTS,
      schemas: SCHEMA_COMPONENTS,
    },
  };
}

function describeQuery({ definition }: Endpoint): Json {
  const { id, name, description, max_rows, parameters, columns } = toCatalogEntry(definition);
  const row = {
    type: 'object',
    required: columns.map(column => column.name),
    properties: Object.fromEntries(columns.map(column => [column.name, columnSchema(column)])),
  };
  const json = {
    type: 'object',
    required: ['result'],
    properties: { result: { type: 'array', maxItems: max_rows, items: row } },
  };
  return {
    operationId: name,
    summary: description,
    description: `Also at /api/endpoints/query/${id}.`,
    parameters: [...parameters.map(describeParameter), ...FORMAT_PARAMETERS],
    responses: {
      200: {
        description: 'The rows.',
        headers: refsToHeaders(...RESULT_HEADERS),
        content: {
          [CONTENT_TYPES.json]: { schema: json },
          [CONTENT_TYPES.ndjson]: { schema: { type: 'string' } },
          [CONTENT_TYPES.csv]: { schema: { type: 'string' } },
        },
      },
      304: {
        description: 'The ETag of the result matches If-None-Match, so the body is empty.',
        headers: refsToHeaders(...RESULT_HEADERS),
      },
      ...tokenErrors(
        'invalid_parameter',
        'missing_parameter',
        'not_found',
        'not_acceptable',
        'query_timeout',
      ),
    },
  };
}

const FORMAT_PARAMETERS: readonly Json[] = [
  {
    name: 'format',
    in: 'query',
    description:
      'Format of the result. Without it, the header Accept decides. csv puts a single quote before a text that a spreadsheet would run as a formula; csv-raw does not.',
    schema: { enum: RESULT_FORMATS },
  },
  {
    name: 'timestamps',
    in: 'query',
    description:
      'With iso, every timestamp is an ISO 8601 string in UTC, such as 2026-11-14T09:30:00.123456Z, also where it is otherwise an integer.',
    schema: { enum: ['iso'] },
  },
];

function describeExplain({ definition }: Endpoint): Json {
  const { id, name, parameters } = toCatalogEntry(definition);
  const json = {
    type: 'object',
    required: ['result'],
    properties: { result: { $ref: '#/components/schemas/Explanation' } },
  };
  return {
    operationId: `explain:${name}`,
    summary: `Explains a result of ${name}: how many records remain after each condition of its query.`,
    description: `Also at /api/endpoints/explain/${id}.`,
    parameters: parameters.map(describeParameter),
    responses: {
      200: { description: 'The explanation.', content: { [CONTENT_TYPES.json]: { schema: json } } },
      ...tokenErrors('invalid_parameter', 'missing_parameter', 'not_found', 'query_timeout'),
    },
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

const HEALTH = { $ref: '#/components/schemas/Health' };

function describeHealth(operationId: string, summary: string, failure: string): Json {
  const responses = {
    200: jsonResult('OK', HEALTH),
    ...errorResponses(),
    503: jsonResult(failure, HEALTH),
  };
  return { get: { operationId, summary, security: [], responses } };
}

const FIXED_PATHS: Json = {
  '/api/endpoints': {
    get: {
      operationId: 'listEndpoints',
      summary: 'The endpoints that the token may call.',
      responses: {
        200: jsonResult('The endpoints.', {
          type: 'object',
          required: ['result'],
          properties: { result: { type: 'array', items: { $ref: '#/components/schemas/CatalogEntry' } } },
        }),
        ...tokenErrors(),
      },
    },
  },
  '/health': describeHealth('health', 'Whether the service is ready.', 'starting or unavailable'),
  '/health/ready': describeHealth(
    'healthReady',
    'The same as /health, under the usual name of a readiness probe.',
    'starting or unavailable',
  ),
  '/health/live': describeHealth(
    'healthLive',
    'Whether the process can recover by itself. 503: restart it.',
    'only a restart helps',
  ),
  '/openapi.json': {
    get: {
      operationId: 'openapi',
      summary: 'This document.',
      security: [],
      responses: { 200: jsonResult('The document.', { type: 'object' }), ...errorResponses() },
    },
  },
};
