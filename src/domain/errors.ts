// What can go wrong, as a closed list of codes. Knows no HTTP: http/error-response.ts gives each code its status.

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
  | 'internal';

/** An error meant for the caller: the message says what was wrong and what is allowed, and holds no SQL, path or token. */
export class DendroError extends Error {
  override readonly name = 'DendroError';
  readonly code: ErrorCode;
  /** The parameter at fault, where one is. */
  readonly param: string | undefined;
  /** When it may be worth trying again, where that is known. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    details: { param?: string; retryAfterSeconds?: number; cause?: unknown } = {},
  ) {
    super(message, { cause: details.cause });
    this.code = code;
    this.param = details.param;
    this.retryAfterSeconds = details.retryAfterSeconds;
  }
}

/** The command line or the environment asks for something that cannot be: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** The operator has to mend something (a broken endpoint folder, a data directory in use): exit code 1, one clear line. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
}
