// Generates the OpenAPI 3.1 document of the public listener from the endpoint definitions.

import type { ErrorCode } from '../domain/errors.ts';
import type { Endpoint } from '../endpoint/catalog.ts';
import type { Parameter } from '../endpoint/definition.ts';
import { RESULT_FORMATS } from '../endpoint/encode-rows.ts';
import { MAX_VALUE_LENGTH } from '../endpoint/parameters.ts';
import type { ColumnType } from '../store/store.ts';
import { CONTENT_TYPES } from './content-negotiation.ts';
import { STATUS_BY_CODE } from './error-response.ts';

type Json = Record<string, unknown>;

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
    info: { title: 'Dendro', version, description: 'Saved log queries, served as HTTP endpoints.' },
    security: [{ apiKey: [] }, { bearer: [] }],
    paths: { ...Object.fromEntries([...queryPaths, ...explainPaths]), ...FIXED_PATHS },
    components: {
      securitySchemes: {
        apiKey: { type: 'apiKey', in: 'header', name: 'X-API-KEY' },
        bearer: { type: 'http', scheme: 'bearer' },
      },
      schemas: { Error: ERROR_SCHEMA, Explanation: EXPLANATION_SCHEMA },
    },
  };
}

function describeQuery({ definition }: Endpoint): Json {
  const row = {
    type: 'object',
    required: Object.keys(definition.columns),
    properties: Object.fromEntries(
      Object.entries(definition.columns).map(([name, { type, description }]) => [
        name,
        { ...COLUMN_SCHEMAS[type], description },
      ]),
    ),
  };
  const json = {
    type: 'object',
    required: ['result'],
    properties: { result: { type: 'array', maxItems: definition.max_rows, items: row } },
  };
  return {
    operationId: definition.name,
    summary: definition.description,
    description: `Also at /api/endpoints/query/${definition.id}.`,
    parameters: [
      ...Object.entries(definition.parameters).map(([name, rule]) => describeParameter(name, rule)),
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
    ],
    responses: {
      200: {
        description: 'The rows.',
        content: {
          [CONTENT_TYPES.json]: { schema: json },
          [CONTENT_TYPES.ndjson]: { schema: { type: 'string' } },
          [CONTENT_TYPES.csv]: { schema: { type: 'string' } },
        },
      },
      ...errorResponses(
        'invalid_parameter',
        'unauthorized',
        'forbidden',
        'not_found',
        'not_acceptable',
        'unavailable',
        'query_timeout',
      ),
    },
  };
}

function describeExplain({ definition }: Endpoint): Json {
  const json = {
    type: 'object',
    required: ['result'],
    properties: { result: { $ref: '#/components/schemas/Explanation' } },
  };
  return {
    operationId: `explain:${definition.name}`,
    summary: `Explains a result of ${definition.name}: how many records remain after each condition of its query.`,
    description: `Also at /api/endpoints/explain/${definition.id}.`,
    parameters: Object.entries(definition.parameters).map(([name, rule]) => describeParameter(name, rule)),
    responses: {
      200: { description: 'The explanation.', content: { [CONTENT_TYPES.json]: { schema: json } } },
      ...errorResponses(
        'invalid_parameter',
        'unauthorized',
        'forbidden',
        'not_found',
        'unavailable',
        'query_timeout',
      ),
    },
  };
}

function describeParameter(name: string, rule: Parameter): Json {
  const { required, description } = rule;
  return { name, in: 'query', required, description, schema: parameterSchema(rule) };
}

function parameterSchema(rule: Parameter): Json {
  switch (rule.type) {
    case 'text':
      return { type: 'string', maxLength: MAX_VALUE_LENGTH };
    case 'pattern':
      return { type: 'string', maxLength: MAX_VALUE_LENGTH, format: 'regex' };
    case 'timestamp':
      return {
        type: 'string',
        description: 'RFC 3339 date-time or date; UTC unless it has an offset.',
      };
    case 'choice': {
      const choices = Object.keys(rule.choices);
      // With a fallback every value is valid, so the schema can only give examples.
      return rule.fallback === undefined
        ? { enum: choices }
        : { type: 'string', examples: choices, default: rule.fallback };
    }
  }
}

const COLUMN_SCHEMAS: Record<ColumnType, Json> = {
  text: { type: ['string', 'null'] },
  integer: { type: ['integer', 'null'] },
  number: { type: ['number', 'null'] },
  json: { type: ['object', 'null'] },
  unix_microseconds: { type: ['integer', 'null'], format: 'int64' },
  utc_datetime: { type: ['string', 'null'], format: 'date-time' },
};

const ERROR_SCHEMA: Json = {
  type: 'object',
  required: ['error'],
  properties: {
    error: {
      type: 'object',
      required: ['code', 'message'],
      properties: {
        code: { enum: Object.keys(STATUS_BY_CODE) },
        message: { type: 'string' },
        param: {
          type: 'string',
          description: 'The name of the parameter that caused the error, if one did.',
        },
      },
    },
  },
};

const NULLABLE_TIME: Json = { type: ['string', 'null'], format: 'date-time' };

const EXPLANATION_SCHEMA: Json = {
  type: 'object',
  required: ['parameters', 'window', 'newest', 'oldest', 'conditions', 'summary'],
  properties: {
    parameters: {
      type: 'object',
      description: 'The parameters of the endpoint after their rules. An absent one is null.',
      additionalProperties: { type: ['string', 'null'] },
    },
    window: {
      type: 'object',
      description: 'The time window of the query. null: no bound.',
      required: ['start', 'end'],
      properties: { start: NULLABLE_TIME, end: NULLABLE_TIME },
    },
    newest: {
      ...NULLABLE_TIME,
      description: 'Time of the newest record of the project. null: it has no records.',
    },
    oldest: {
      ...NULLABLE_TIME,
      description: 'Time of the oldest record of the project. null: it has no records.',
    },
    conditions: {
      type: 'array',
      description: 'The conditions of the query that apply to the request, in order.',
      items: {
        type: 'object',
        required: ['name', 'remaining'],
        properties: {
          name: { type: 'string' },
          remaining: {
            type: 'integer',
            description: 'How many records meet this condition and all before it.',
          },
        },
      },
    },
    summary: { type: 'string', description: 'One sentence.' },
  },
};

function errorResponses(...codes: ErrorCode[]): Json {
  const content = { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } };
  return Object.fromEntries(codes.map(code => [STATUS_BY_CODE[code], { description: code, content }]));
}

const ANY_JSON = { description: 'OK', content: { 'application/json': { schema: { type: 'object' } } } };

const FIXED_PATHS: Json = {
  '/api/endpoints': {
    get: {
      summary: 'The endpoints that the token may call.',
      responses: { 200: ANY_JSON, ...errorResponses('unauthorized', 'forbidden', 'unavailable') },
    },
  },
  '/health': {
    get: {
      summary: 'Whether the service is ready.',
      security: [],
      responses: { 200: ANY_JSON, 503: { ...ANY_JSON, description: 'starting or unavailable' } },
    },
  },
  '/health/ready': {
    get: {
      summary: 'The same as /health, under the usual name of a readiness probe.',
      security: [],
      responses: { 200: ANY_JSON, 503: { ...ANY_JSON, description: 'starting or unavailable' } },
    },
  },
  '/health/live': {
    get: {
      summary: 'Whether the process can recover by itself. 503: restart it.',
      security: [],
      responses: { 200: ANY_JSON, 503: { ...ANY_JSON, description: 'only a restart helps' } },
    },
  },
  '/openapi.json': {
    get: { summary: 'This document.', security: [], responses: { 200: ANY_JSON } },
  },
};
