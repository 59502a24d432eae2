// Classifies errors: those of ClickHouse by their codes; others, except programming errors, count as errors of the network.
// Translates them: to a detailed message for the operator, and to `unavailable` for callers of the store.
import { ClickHouseError } from '@clickhouse/client';
import { DendroError, isProgrammingError, OperatorError } from '../../domain/errors.ts';

/** ClickHouse's error codes are the same in every version. */
const CODES = {
  timeoutExceeded: 159,
  tooSlow: 160,
  memoryLimit: 241,
  killed: 394,
} as const;

/**
 * Errors that a retry, on another host or later, may avoid: of files (76, 1000), names (198), quotas (201, 202), the network (209, 210,
 * 279), Keeper (225, 242, 999), a shutdown (236), memory and disk space (241, 243), too many parts (252), the insert quorum (285, 286,
 * 319), a killed query (394) and threads (439).
 */
const TRANSIENT_ERRORS = new Set([
  ...[76, 198, 201, 202, 209, 210, 225, 236, 241, 242, 243, 252, 279, 285, 286, 319, 394, 439, 999, 1000],
]);

/** Errors that remain until the operator fixes the configuration. */
const CONFIGURATION_ERRORS = new Map([
  [60, 'a table does not exist; run `dendro schema clickhouse --apply` to create it'],
  [81, 'the database does not exist; run `dendro schema clickhouse --apply` to create it'],
  [115, 'the server does not support a setting; use ClickHouse 23.6 or newer'],
  [
    164,
    'the user is read-only; set readonly = 2 for the user that reads and readonly = 0 for the one that inserts',
  ],
  [192, 'the user does not exist; check the user in the ClickHouse URL'],
  [193, 'the password is wrong; check the password in the ClickHouse URL'],
  [194, 'the user needs a password; add it to the ClickHouse URL'],
  [497, 'the user lacks a privilege; grant it'],
  [516, 'the user or the password is wrong; check both in the ClickHouse URL'],
]);

/** Errors about values that ClickHouse cannot parse. */
const DATA_ERROR_CODES = new Set([6, 26, 27, 33, 38, 41, 53, 69, 70, 72, 130, 349]);

export function codeOf(error: unknown): number | undefined {
  return error instanceof ClickHouseError ? Number(error.code) : undefined;
}

/** The error of ClickHouse or of the network that `toCallerError` turned into `unavailable`. Returns other errors unchanged. */
export function causeOf(error: unknown): unknown {
  return error instanceof DendroError ? (error.cause ?? error) : error;
}

/** A retry may succeed, on another host or later: the cause is neither the request nor a programming error. */
export function isTransient(error: unknown): boolean {
  if (isProgrammingError(error)) return false;
  const code = codeOf(error);
  return code === undefined || TRANSIENT_ERRORS.has(code);
}

/** A transient error that is not retried on another host: somebody ended the query on purpose. */
export function isKilled(error: unknown): boolean {
  return codeOf(error) === CODES.killed;
}

/**
 * ClickHouse cannot parse a row of the insert and has stored none of its rows. A materialized view of the operator can
 * fail with the same codes after some rows are stored; its error names no row, or says `while pushing to view`.
 */
export function isRowError(error: unknown): boolean {
  if (!DATA_ERROR_CODES.has(codeOf(error) ?? -1)) return false;
  const { message } = error as Error;
  return /: \(at row \d+\)$/m.test(message) && !message.includes('while pushing to view');
}

export function isTimeout(error: unknown): boolean {
  const code = codeOf(error);
  return code === CODES.timeoutExceeded || code === CODES.tooSlow;
}

/** One line for the operator: what it means, what to do, and ClickHouse's own message. */
export function describeError(error: unknown): string {
  const code = codeOf(error);
  const { message, code: systemCode } = error as NodeJS.ErrnoException;
  if (code === undefined) return `${message || systemCode}`.split('\n', 1)[0] ?? '';
  const reported = `error ${code}: ${message.split('\n', 1)[0]}`;
  const meaning = CONFIGURATION_ERRORS.get(code);
  return meaning === undefined ? reported : `${meaning} (${reported})`;
}

/**
 * `failure` says what failed, such as "cannot insert records into ClickHouse". Programming errors, and errors that are already
 * for the operator, are returned unchanged.
 */
export function toOperatorError(failure: string, error: unknown): Error {
  if (error instanceof OperatorError || isProgrammingError(error)) return error;
  return new OperatorError(`${failure}: ${describeError(error)}`, { cause: error });
}

/**
 * Callers of the store get `unavailable` for transient errors and for errors that the operator must fix. Other errors are
 * returned unchanged.
 */
export function toCallerError(error: unknown): unknown {
  if (error instanceof DendroError) return error;
  const code = codeOf(error);
  return isTransient(error) || CONFIGURATION_ERRORS.has(code ?? -1) ? unavailable(error) : error;
}

function unavailable(cause: unknown): DendroError {
  const message = `${problemOf(codeOf(cause))}; retry in a moment`;
  return new DendroError('unavailable', message, { retryAfterSeconds: 2, cause });
}

/** What callers are told. ClickHouse's own message is for the operator only. */
function problemOf(code: number | undefined): string {
  if (code === undefined) return 'the store is unreachable';
  return code === CODES.memoryLimit ? 'the store is short of memory' : 'the store is unavailable';
}
