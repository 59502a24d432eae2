// The check of commands and actions that accept flags only.
import { UsageError } from '../domain/errors.ts';

/** Throws a UsageError if there are arguments besides the flags. */
export function rejectArguments([unexpected]: readonly string[]): void {
  if (unexpected !== undefined) throw new UsageError(`unexpected argument: ${unexpected}`);
}
