// Why a query of Studio is refused.
import { DendroError } from '../domain/errors.ts';

/** `at` is a position in the query; the first character has position 1. Undefined: the whole query. */
export function refuse(problem: string, at: number | undefined): DendroError {
  const message = at === undefined ? problem : `${problem}, at character ${at}`;
  return new DendroError('invalid_parameter', message, { param: 'sql' });
}
