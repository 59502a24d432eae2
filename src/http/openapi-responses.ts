// The responses of OpenAPI operations: which statuses a route can return, and with which headers and body.
import type { ErrorCode } from '../domain/errors.ts';
import { STATUS_BY_CODE } from './error-response.ts';

export type Json = Record<string, unknown>;

/** Any request can fail with these. `invalid_body` includes malformed HTTP, and a missing or second header Host. */
const COMMON_CODES: readonly ErrorCode[] = [
  'invalid_body',
  'method_not_allowed',
  'request_timeout',
  'uri_too_long',
  'headers_too_large',
  'internal',
];
/** Any request that needs a token can fail with these. */
const TOKEN_CODES: readonly ErrorCode[] = ['unauthorized', 'forbidden', 'rate_limited', 'unavailable'];

const ERROR_HEADERS: Readonly<Partial<Record<ErrorCode, string>>> = {
  unauthorized: 'WWW-Authenticate',
  method_not_allowed: 'Allow',
  rate_limited: 'Retry-After',
  unavailable: 'Retry-After',
};

/** The error responses of a route that needs a token: for the given codes, TOKEN_CODES and COMMON_CODES. */
export function tokenErrors(...codes: readonly ErrorCode[]): Json {
  return errorResponses(...TOKEN_CODES, ...codes);
}

/** The error responses for the given codes and COMMON_CODES. Codes with the same status share a response. */
export function errorResponses(...codes: readonly ErrorCode[]): Json {
  const responses: Json = {};
  const all = [...codes, ...COMMON_CODES];
  for (const code of all) {
    const status = STATUS_BY_CODE[code];
    const headerName = ERROR_HEADERS[code];
    responses[status] = {
      description: all.filter(other => STATUS_BY_CODE[other] === status).join(', '),
      ...(headerName !== undefined && { headers: refsToHeaders(headerName) }),
      content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
    };
  }
  return responses;
}

export function jsonResult(description: string, schema: Json): Json {
  return { description, content: { 'application/json': { schema } } };
}

export const RESULT_HEADERS = [
  'ETag',
  'Age',
  'Cache-Control',
  'Cache-Status',
  'Server-Timing',
  'Dendro-Data-Through',
  'Dendro-Clipped',
  'Dendro-Missing-Parts',
  'Dendro-Next-Cursor',
  'Dendro-Request-Id',
];

export function refsToHeaders(...names: readonly string[]): Json {
  return Object.fromEntries(names.map(name => [name, { $ref: `#/components/headers/${name}` }]));
}

const header = (description: string, type = 'string') => ({ description, schema: { type } });

export const HEADER_COMPONENTS: Json = {
  ETag: header('Identifies the bytes of the body.'),
  Age: header('Seconds since the query ran.', 'integer'),
  'Cache-Control': header(
    'private, max-age=N: N is the age at which the next refresh is due or the cache entry expires, whichever is first. no-store: the endpoint is not cached.',
  ),
  'Cache-Status': header('RFC 9211: whether the result was cached.'),
  'Server-Timing': header('Milliseconds in the queue, in the store and in everything else.'),
  'Dendro-Data-Through': header(
    'Timestamp of the newest record, not later than now, of the log kinds that the query reads, ISO 8601. For a pinned token: ' +
      'of the requested project or, without the parameter project, of its projects. Absent: there is none.',
  ),
  'Dendro-Clipped': header(
    'Why rows are missing: row-limit, byte-limit, time-limit; or may be missing: retention. Rows of later pages do not count.',
  ),
  'Dendro-Missing-Parts': header(
    'How many damaged or missing files of the store have records that the result lacks. Absent: none.',
    'integer',
  ),
  'Dendro-Next-Cursor': header(
    'The value to send as the parameter cursor to get the next page, if there may be more rows.',
  ),
  'Dendro-Request-Id': header('Identifies the request in the log of Dendro.'),
  'Retry-After': header('Seconds until a retry may succeed.', 'integer'),
  'WWW-Authenticate': header('Always Bearer.'),
  Allow: header('The allowed methods.'),
};
