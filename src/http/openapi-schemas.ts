// The schemas of OpenAPI that do not depend on an endpoint.
import { STATUS_BY_CODE } from './error-response.ts';
import type { Json } from './openapi-responses.ts';

const ERROR_FIELDS: Json = {
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
};

const NULLABLE_TIME: Json = { type: ['string', 'null'], format: 'date-time' };

/** `newest` or `oldest` of an explanation. */
function recordTime(which: string): Json {
  const description = `Time of the ${which} record of the project, inside or outside the window, among the log kinds that the query reads. Of all projects if the query has no condition on the project. null: there is none.`;
  return { ...NULLABLE_TIME, description };
}

const EXPLANATION: Json = {
  type: 'object',
  required: ['parameters', 'window', 'newest', 'oldest', 'conditions', 'summary'],
  properties: {
    parameters: {
      type: 'object',
      description:
        "The values that the query uses, after defaults, fallbacks and the token's maximum tier. null: the parameter has no value.",
      additionalProperties: { type: ['string', 'null'] },
    },
    window: {
      type: 'object',
      description: 'The time window of the query. null: no bound.',
      required: ['start', 'end'],
      properties: { start: NULLABLE_TIME, end: NULLABLE_TIME },
    },
    newest: recordTime('newest'),
    oldest: recordTime('oldest'),
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

const CATALOG_ENTRY: Json = {
  type: 'object',
  required: ['id', 'name', 'description', 'max_rows', 'cache', 'parameters', 'columns'],
  properties: {
    id: { type: 'string', format: 'uuid' },
    name: { type: 'string' },
    description: { type: 'string' },
    max_rows: { type: 'integer' },
    cache: {
      type: 'object',
      required: ['lifetime_seconds', 'warming_seconds'],
      properties: {
        lifetime_seconds: { type: 'integer' },
        warming_seconds: { type: ['integer', 'null'] },
      },
    },
    sandboxing: { const: false, description: 'Always false: a caller cannot pass SQL of its own.' },
    parameters: { type: 'array', items: describedValue({ required: { type: 'boolean' } }) },
    columns: { type: 'array', items: describedValue({ nullable: { type: 'boolean' } }) },
  },
};

/** A parameter or a column of the catalog. */
function describedValue(more: Json): Json {
  const text = { type: 'string' };
  return {
    type: 'object',
    required: ['name', 'type', 'description'],
    properties: { name: text, type: text, description: text, ...more },
  };
}

const HEALTH: Json = {
  type: 'object',
  required: ['status', 'version', 'store'],
  properties: {
    status: { enum: ['ok', 'starting', 'unavailable'] },
    version: { type: 'string' },
    store: { enum: ['duckdb', 'clickhouse'] },
  },
};

const INTAKE_RESULT: Json = {
  type: 'object',
  required: ['message', 'accepted', 'rejected', 'errors'],
  properties: {
    message: { type: 'string' },
    accepted: { type: 'integer', description: 'Records that are durable now.' },
    rejected: { type: 'integer' },
    errors: {
      type: 'array',
      description:
        'Errors of the first 20 rejected records. If the request is a repeat: only the error of the first rejected record.',
      items: {
        type: 'object',
        required: ['index', 'code', 'message'],
        properties: {
          index: { type: 'integer', description: 'Position in the body, from 0.' },
          code: { type: 'string' },
          message: { type: 'string' },
        },
      },
    },
    error: { ...ERROR_FIELDS, description: 'Present only with status 422: every record was rejected.' },
  },
};

const LOG_RECORD: Json = {
  type: 'object',
  description:
    'If event_message is not a string, the text is taken from message. Any other field is kept in metadata.',
  properties: {
    id: { type: 'string' },
    timestamp: {
      type: ['string', 'integer'],
      description:
        'RFC 3339, or Unix time in seconds, milliseconds, microseconds or nanoseconds. Absent: now.',
    },
    project: { type: 'string' },
    event_message: { type: 'string' },
    metadata: { type: 'object' },
  },
};

const ERASURE: Json = {
  type: ['object', 'null'],
  description: 'The current erasure, or the last one since the server started. null: there was none.',
  required: ['state', 'project', 'before'],
  properties: {
    state: { enum: ['running', 'done', 'failed'] },
    project: { type: 'string' },
    before: NULLABLE_TIME,
    records: { type: 'integer', description: 'Records that were erased from the store.' },
    quarantined: { type: 'integer', description: 'Rejected records that were erased from the quarantine.' },
    damaged_files: {
      type: 'integer',
      description: 'Copies of damaged files, which may contain records of any project and were not changed.',
    },
  },
};

export const SCHEMA_COMPONENTS: Json = {
  Error: { type: 'object', required: ['error'], properties: { error: ERROR_FIELDS } },
  Explanation: EXPLANATION,
  CatalogEntry: CATALOG_ENTRY,
  Health: HEALTH,
  IntakeResult: INTAKE_RESULT,
  LogRecord: LOG_RECORD,
  Erasure: ERASURE,
};
