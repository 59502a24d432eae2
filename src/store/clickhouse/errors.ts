// What goes wrong between here and ClickHouse, for two audiences: the operator reads what ClickHouse said, a caller that
// the store is out of reach.
import { ClickHouseError } from '@clickhouse/client';
import { DendroError, OperatorError } from '../../domain/errors.ts';

/** The numbers of ClickHouse's errors, which stay the same from version to version. */
const CODES = {
  timeoutExceeded: 159,
  tooSlow: 160,
  memoryLimit: 241,
  killed: 394,
  badPattern: 427,
} as const;

/** A server that answers one of these cannot do it now; another one, or the same later, may. */
const TRANSIENT_ERRORS = new Map([
  [76, 'it cannot open a file'],
  [198, 'it cannot find the address of a server behind it'],
  [201, 'the quota of the user is used up'],
  [202, 'it runs too many queries'],
  [209, 'a server behind it did not answer in time'],
  [210, 'a server behind it cannot be reached'],
  [225, 'it has lost its Keeper'],
  [236, 'it is shutting down'],
  [241, 'it is short of memory'],
  [242, 'its table is read-only for the moment, as when Keeper is lost'],
  [243, 'its disk is full'],
  [252, 'it has too many parts to merge'],
  [279, 'no replica of a shard can be reached'],
  [285, 'too few replicas are alive'],
  [286, 'its quorum was not reached'],
  [319, 'it does not know whether the insert was done'],
  [394, 'the query was killed'],
  [439, 'it cannot start a thread'],
  [999, 'its Keeper does not answer'],
  [1000, 'its network or a file failed it'],
]);

/** What the operator has to mend. */
const CONFIGURATION_ERRORS = new Map([
  [192, 'it knows no such user'],
  [193, 'the password is wrong'],
  [194, 'it wants a password'],
  [516, 'the user or the password is wrong'],
  [81, 'there is no such database; `dendro schema clickhouse --apply` makes it'],
  [60, 'a table is missing; `dendro schema clickhouse --apply` makes it'],
  [
    164,
    'the user is read-only; one that reads may have readonly = 2, but not 1, and one that inserts neither',
  ],
  [115, 'it does not know a setting; versions before 23.6 are too old'],
  [497, 'the user lacks a right'],
]);

/** What ClickHouse says of values that it cannot read. */
const DATA_ERROR_CODES = new Set([6, 26, 27, 33, 38, 41, 53, 69, 70, 72, 130, 349]);

export function codeOf(error: unknown): number | undefined {
  return error instanceof ClickHouseError ? Number(error.code) : undefined;
}

/** Another host may be asked: nothing but this host is at fault, or this moment. */
export function isTransient(error: unknown): boolean {
  const code = codeOf(error);
  return code === undefined || TRANSIENT_ERRORS.has(code);
}

/** Somebody wanted it ended, so no other host is asked. */
export function isKilled(error: unknown): boolean {
  return codeOf(error) === CODES.killed;
}

/**
 * A row of what was sent cannot be read, and nothing of it was kept. A view of the operator's that fails says much the same,
 * but names no row, and what was sent may have been kept in part.
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

/** What is wrong with a pattern, in RE2's words, without the flags before it; undefined where the error is another. */
export function findPatternError(error: unknown, flags: string): string | undefined {
  if (codeOf(error) !== CODES.badPattern) return undefined;
  const { message } = error as Error;
  const start = message.lastIndexOf(', error: ');
  const end = message.indexOf('. Look at https', start);
  if (start === -1 || end === -1) return 'it is refused';
  return message.slice(start + ', error: '.length, end).replace(`: ${flags}`, ': ');
}

/** One line for the operator. */
export function describeError(error: unknown): string {
  const code = codeOf(error);
  const { message, code: systemCode } = error as NodeJS.ErrnoException;
  if (code === undefined) return `${message || systemCode}`.split('\n', 1)[0] ?? '';
  const meaning = TRANSIENT_ERRORS.get(code) ?? CONFIGURATION_ERRORS.get(code);
  const said = `${message.split('\n', 1)[0]} (code ${code})`;
  return meaning === undefined ? said : `${meaning}: ${said}`;
}

export function toOperatorError(what: string, error: unknown): OperatorError {
  if (error instanceof OperatorError) return error;
  return new OperatorError(`ClickHouse: ${what}: ${describeError(error)}`, { cause: error });
}

export function unreachable(cause: unknown): DendroError {
  const reason =
    codeOf(cause) === CODES.memoryLimit ? 'the store is short of memory' : 'the store is out of reach';
  return new DendroError('unavailable', `${reason}; try again in a moment`, { retryAfterSeconds: 2, cause });
}

/** For callers: whatever the operator has to mend is, to them, a store that is out of reach. */
export function toCallerError(error: unknown): unknown {
  if (error instanceof DendroError) return error;
  const code = codeOf(error);
  return isTransient(error) || CONFIGURATION_ERRORS.has(code ?? -1) ? unreachable(error) : error;
}
