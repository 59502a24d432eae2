// All error codes, and the error classes that several modules share. Independent of HTTP: http/error-response.ts maps codes to
// statuses.

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

/** An error for the HTTP client. The message says what is wrong and what is allowed. It contains no SQL, path or token. */
export class DendroError extends Error {
  override readonly name = 'DendroError';
  readonly code: ErrorCode;
  /** The parameter that caused the error, if one did. */
  readonly param: string | undefined;
  /** After how many seconds a retry may succeed, if known. */
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

/** A query spent nearly all of its time in the queue, so it did not take too long itself. */
export class QueuedTooLongError extends DendroError {
  constructor() {
    super('unavailable', 'the query waited too long in the queue; retry in a moment');
  }
}

/** Why a request is refused because of its token. */
export const REFUSAL_REASONS = [
  'no_token',
  'unknown_token',
  'expired_token',
  'rate_limited',
  'missing_scope',
  'project_not_allowed',
] as const;
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** A request is refused because of its token. `tokenName` is for the log; the client does not get it. */
export class RefusedError extends DendroError {
  readonly reason: RefusalReason;
  readonly tokenName: string | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    refusal: {
      reason: RefusalReason;
      tokenName?: string | undefined;
      param?: string;
      retryAfterSeconds?: number;
    },
  ) {
    super(code, message, refusal);
    this.reason = refusal.reason;
    this.tokenName = refusal.tokenName;
  }
}

/** Wrong use of the command line or the environment: exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/**
 * The operator must fix something, such as an invalid endpoint folder or a data directory in use: exit code 1. The message is one
 * line and is printed without a stack trace.
 */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';
}

/** One error in place of several. */
export function joinProblems(problems: readonly Error[]): Error {
  const [only = new Error(), ...others] = problems;
  if (others.length === 0) return only;
  const list = problems.map(({ message }, index) => `(${index + 1}) ${message}`);
  return new OperatorError(`${problems.length} problems: ${list.join('; ')}`);
}

/**
 * Whether the error is a defect of the program, such as reading a property of undefined. Such an error is never retried as if a
 * store or a network had failed, and is logged with its stack. A SyntaxError does not count as a defect, because JSON.parse also
 * throws it for a malformed response of another program.
 */
export function isProgrammingError(error: unknown): error is Error {
  return error instanceof TypeError || error instanceof ReferenceError || error instanceof RangeError;
}

export function timedOut(seconds: number): DendroError {
  return new DendroError(
    'query_timeout',
    `the query exceeded its limit of ${seconds} s and was cancelled; ask for a shorter time range`,
  );
}
