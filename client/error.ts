// The error that a method of the client throws if it fails, unless the caller aborted the request or passed an invalid Date.

/** The codes of the API. The last three are those of the client itself. */
export type ErrorCode =
  | 'invalid_parameter'
  | 'missing_parameter'
  | 'invalid_body'
  | 'unauthorized'
  | 'forbidden'
  | 'not_found'
  | 'method_not_allowed'
  | 'not_acceptable'
  | 'request_timeout'
  | 'payload_too_large'
  | 'uri_too_long'
  | 'headers_too_large'
  | 'unsupported_media_type'
  | 'nothing_accepted'
  | 'idempotency_conflict'
  | 'rate_limited'
  | 'unavailable'
  | 'query_timeout'
  | 'internal'
  /** There was no response, or it was a redirect. */
  | 'unreachable'
  /** The response is incomplete, or its body is not the JSON of the API. */
  | 'unreadable'
  /** An error response that is not from the API, for example from a proxy. */
  | 'unexpected';

export interface ErrorDetails {
  readonly status?: number | undefined;
  readonly param?: string | undefined;
  readonly retryAfterSeconds?: number | undefined;
  readonly requestId?: string | undefined;
  readonly cause?: unknown;
}

export class DendroError extends Error {
  override readonly name = 'DendroError';
  readonly code: ErrorCode;
  /** The HTTP status; undefined for the code `unreachable`, and if createClient rejected the token. */
  readonly status: number | undefined;
  /** The parameter that caused the error, if one did. */
  readonly param: string | undefined;
  /** After how many seconds a retry may succeed, if the server said so. */
  readonly retryAfterSeconds: number | undefined;
  /** Identifies the request in the log of the server, if it was logged. */
  readonly requestId: string | undefined;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.status = details.status;
    this.param = details.param;
    this.retryAfterSeconds = details.retryAfterSeconds;
    this.requestId = details.requestId;
  }
}

/** Converts an error response. `text` is its body: the JSON of the API, or anything that a proxy sends. */
export function toError({ status, headers }: Response, text: string): DendroError {
  const details = {
    status,
    retryAfterSeconds: readRetryAfter(headers.get('Retry-After')),
    requestId: headers.get('Dendro-Request-Id') ?? undefined,
  };
  const error = parseError(text);
  if (error === undefined)
    return new DendroError('unexpected', `the server returned status ${status} without a reason`, details);
  return new DendroError(error.code, error.message, { ...details, param: error.param });
}

function parseError(text: string): { code: ErrorCode; message: string; param?: string } | undefined {
  try {
    const { error } = JSON.parse(text);
    return typeof error?.code === 'string' && typeof error.message === 'string' ? error : undefined;
  } catch {
    return undefined;
  }
}

/** Returns seconds. The header has a number of seconds or, from some proxies, a date. */
function readRetryAfter(value: string | null): number | undefined {
  if (value === null) return undefined;
  const seconds = /^\d+$/.test(value) ? Number(value) : (Date.parse(value) - Date.now()) / 1000;
  return Number.isNaN(seconds) ? undefined : Math.max(0, seconds);
}
