// The routes of the internal listener in OpenAPI: log intake, administration, metrics.
import { ACCEPTED_NAMES } from '../logs/source-name.ts';
import { type Json, jsonResult, tokenErrors } from './openapi-responses.ts';

const INTERNAL_SERVERS = [
  {
    url: '{internal_url}',
    description: 'The internal listener.',
    variables: {
      internal_url: { default: 'http://127.0.0.1:4001', description: 'URL of the internal listener.' },
    },
  },
];

const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });
const RECORDS = { type: 'array', items: ref('LogRecord') };

const INTAKE_HEADERS = [
  {
    name: 'Idempotency-Key',
    in: 'header',
    description:
      'For 10 minutes, a repeat with the same key and body is not stored. It gets the same response, with at most one error.',
    schema: { type: 'string', maxLength: 255 },
  },
  {
    name: 'Content-Encoding',
    in: 'header',
    description: 'Compression of the body. zstd needs Node 22.15 or later on the server.',
    schema: { enum: ['identity', 'gzip', 'deflate', 'br', 'zstd'] },
  },
];

const POST_LOGS: Json = {
  operationId: 'sendLogs',
  summary: 'Accepts log records. Responds when the accepted ones are durable.',
  parameters: [
    {
      name: 'source_name',
      in: 'query',
      description:
        'The log kind, or an alias of it. Required, unless the parameter source or the header X-Source has it.',
      schema: { enum: ACCEPTED_NAMES },
    },
    ...INTAKE_HEADERS,
  ],
  requestBody: {
    required: true,
    description: 'At most 16 MiB, as sent and after decompression, and 1 MiB per record.',
    content: {
      'application/json': {
        schema: {
          anyOf: [
            RECORDS,
            { type: 'object', required: ['batch'], properties: { batch: RECORDS } },
            ref('LogRecord'),
          ],
        },
      },
      'application/x-ndjson': { schema: { type: 'string', description: 'One record per line.' } },
    },
  },
  responses: {
    ...tokenErrors(
      'invalid_parameter',
      'missing_parameter',
      'payload_too_large',
      'unsupported_media_type',
      'idempotency_conflict',
    ),
    200: jsonResult('The accepted records are durable. Rejected ones are listed.', ref('IntakeResult')),
    422: jsonResult(
      'nothing_accepted: every record was rejected; idempotency_conflict: the key was used before with another body.',
      { anyOf: [ref('IntakeResult'), ref('Error')] },
    ),
  },
};

/** A protobuf message in both encodings of OTLP. `message` is the name of its type. */
const otlpContent = (message: string, properties: Json = {}): Json => ({
  'application/x-protobuf': { schema: { type: 'string', format: 'binary', description: message } },
  'application/json': { schema: { type: 'object', description: message, properties } },
});

const STATUS = otlpContent('google.rpc.Status', { code: { type: 'integer' }, message: { type: 'string' } });

const POST_OTLP_LOGS: Json = {
  operationId: 'sendOtlpLogs',
  summary: 'Accepts log records of the OpenTelemetry protocol. Responds when the accepted ones are durable.',
  parameters: [
    {
      name: 'source_name',
      in: 'query',
      description:
        'The log kind of all records, or an alias of it. Absent: the parameter source, then the header X-Source, then service.name of each resource.',
      schema: { type: 'string' },
    },
    ...INTAKE_HEADERS,
  ],
  requestBody: {
    required: true,
    description: 'At most 16 MiB, as sent and after decompression, and 1 MiB per record.',
    content: otlpContent('ExportLogsServiceRequest', { resourceLogs: { type: 'array' } }),
  },
  responses: {
    ...withContent(
      STATUS,
      tokenErrors('invalid_parameter', 'payload_too_large', 'unsupported_media_type', 'idempotency_conflict'),
    ),
    200: {
      description: 'The accepted records are durable. partialSuccess counts the rejected ones.',
      content: otlpContent('ExportLogsServiceResponse', {
        partialSuccess: {
          type: 'object',
          properties: { rejectedLogRecords: { type: 'string' }, errorMessage: { type: 'string' } },
        },
      }),
    },
  },
};

/** The same responses with other bodies. */
function withContent(content: Json, responses: Json): Json {
  return Object.fromEntries(
    Object.entries(responses).map(([status, response]) => [status, { ...(response as Json), content }]),
  );
}

const ERASE_RESULT: Json = {
  type: 'object',
  required: ['result'],
  properties: { result: ref('Erasure') },
};

const ERASE: Json = {
  post: {
    operationId: 'erase',
    summary: 'Starts to erase the records of one project: all of them, or only those before a time.',
    requestBody: {
      required: true,
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['project'],
            properties: {
              project: { type: 'string' },
              before: { type: ['string', 'null'], description: 'RFC 3339 date-time or date.' },
            },
            additionalProperties: false,
          },
        },
      },
    },
    responses: {
      202: jsonResult('The erasure is saved and starts. GET returns its state.', ERASE_RESULT),
      ...tokenErrors('invalid_parameter', 'missing_parameter', 'payload_too_large'),
    },
  },
  get: {
    operationId: 'getErasure',
    summary: 'The state of the current or the last erasure.',
    responses: { 200: jsonResult('The erasure.', ERASE_RESULT), ...tokenErrors() },
  },
};

const METRICS: Json = {
  operationId: 'metrics',
  summary: 'Metrics in the Prometheus text format. With --metrics-open, no token is needed.',
  responses: {
    200: { description: 'The metrics.', content: { 'text/plain': { schema: { type: 'string' } } } },
    ...tokenErrors(),
  },
};

const TAR_ARCHIVE: Json = {
  description: 'A tar archive.',
  content: { 'application/x-tar': { schema: { type: 'string', format: 'binary' } } },
};

const BACKUP: Json = {
  get: {
    operationId: 'backup',
    summary: 'A copy of the data directory at one moment.',
    responses: { 200: TAR_ARCHIVE, ...tokenErrors() },
  },
  post: {
    operationId: 'incrementalBackup',
    summary: 'A copy of the data directory at one moment, without the parts that the client has.',
    requestBody: {
      required: true,
      description: 'At most 1 MiB.',
      content: {
        'application/json': {
          schema: {
            type: 'object',
            required: ['have'],
            properties: {
              have: {
                type: 'array',
                description: 'The SHA-256 of each part that the client has.',
                items: { type: 'string', pattern: '^[0-9a-f]{64}$' },
              },
            },
            additionalProperties: false,
          },
        },
      },
    },
    responses: { 200: TAR_ARCHIVE, ...tokenErrors('invalid_parameter', 'payload_too_large') },
  },
};

export const INTERNAL_PATHS: Json = {
  '/api/logs': { servers: INTERNAL_SERVERS, post: POST_LOGS },
  '/v1/logs': { servers: INTERNAL_SERVERS, post: POST_OTLP_LOGS },
  '/api/admin/erase': { servers: INTERNAL_SERVERS, ...ERASE },
  '/api/admin/backup': { servers: INTERNAL_SERVERS, ...BACKUP },
  '/metrics': { servers: INTERNAL_SERVERS, get: METRICS },
};
