// What stands on the command line besides flags.
import type { Invocation } from '../config.ts';
import { UsageError } from '../domain/errors.ts';

export function refusePositionals({ positionals }: Invocation): void {
  if (positionals.length > 0) throw new UsageError(`${positionals[0]} is not understood; only flags are`);
}
