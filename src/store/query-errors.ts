// What every store says of a query that it did not run to its end.
import { DendroError } from '../domain/errors.ts';

export function storeClosed(): DendroError {
  return new DendroError('unavailable', 'the store is closed');
}

export function waitedTooLong(): DendroError {
  return new DendroError('unavailable', 'the query waited too long for its turn; try again in a moment');
}

export function timedOut(seconds: number): DendroError {
  return new DendroError(
    'query_timeout',
    `the query ran past its limit of ${seconds} s and was cancelled; a narrower question may fit`,
  );
}
