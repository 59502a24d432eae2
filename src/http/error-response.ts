// Converts errors to responses: the HTTP status of each error code, and the JSON body that all errors share.
import { DendroError, type ErrorCode, RefusedError } from '../domain/errors.ts';
import type { Token } from '../token/token.ts';
import { type HttpResponse, jsonResponse } from './response.ts';

export const STATUS_BY_CODE: Readonly<Record<ErrorCode, number>> = {
  invalid_parameter: 400,
  missing_parameter: 400,
  invalid_body: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  not_acceptable: 406,
  request_timeout: 408,
  payload_too_large: 413,
  uri_too_long: 414,
  unsupported_media_type: 415,
  nothing_accepted: 422,
  idempotency_conflict: 422,
  rate_limited: 429,
  headers_too_large: 431,
  internal: 500,
  unavailable: 503,
  query_timeout: 504,
};

export function errorResponse(error: DendroError): HttpResponse {
  const { code, message, param } = error;
  const fields = param === undefined ? { code, message } : { code, message, param };
  return jsonResponse(STATUS_BY_CODE[code], { error: fields }, headersOf(error));
}

/** The headers that an error has in every format. */
export function headersOf({ code, retryAfterSeconds = 1 }: DendroError): Record<string, string> {
  if (code === 'unauthorized') return { 'WWW-Authenticate': 'Bearer' };
  // To keep the connection, the server would have to read the rest of the body first, and that arrives too slowly.
  if (code === 'request_timeout') return { Connection: 'close' };
  const isRetryable = code === 'rate_limited' || code === 'unavailable';
  return isRetryable ? { 'Retry-After': String(retryAfterSeconds) } : {};
}

/** Returns the error that the client gets. The details of an internal error are only in the server log. */
export function toClientError(error: unknown): DendroError {
  return error instanceof DendroError
    ? error
    : new DendroError('internal', 'internal error; the server log has the details');
}

/** `scopes` are alternatives. If the token has one of them, its pin to projects is the reason. */
export function missingScopeError(token: Token, ...scopes: string[]): RefusedError {
  const message = scopes.some(scope => token.scopes.includes(scope))
    ? 'the token is pinned to projects, and this is not limited to them'
    : `the token needs the scope ${scopes.join(' or ')}; it has: ${token.scopes.join(', ')}`;
  return new RefusedError('forbidden', message, {
    reason: 'missing_scope',
    tokenName: token.name,
  });
}
