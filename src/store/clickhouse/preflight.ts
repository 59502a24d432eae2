// Checks at start that ClickHouse has the tables and columns, and that the users may read from and insert into them.

import { isProgrammingError } from '../../domain/errors.ts';
import { columnsOf, LOG_KINDS } from '../../domain/log-columns.ts';
import { codeOf, describeError, isTransient } from './errors.ts';
import type { Reader } from './reader.ts';
import type { Writer } from './writer.ts';

/**
 * Returns what is missing, in one sentence, or undefined. Throws if the check could not be made: for transient errors, such as an
 * unreachable server, and for defects of Dendro.
 */
export async function runPreflight(reader: Reader, writer: Writer): Promise<string | undefined> {
  for (const kind of LOG_KINDS) {
    const table = `${kind}_logs`;
    const columns = columnsOf(kind).map(({ name }) => name);
    try {
      await reader.query({ sql: `select ${columns.join(', ')} from ${table} limit 0`, purpose: 'check' });
    } catch (error) {
      // The reader wraps most errors in `unavailable` (toCallerError in errors.ts), so check the cause. `checkInsert` wraps none.
      const cause = error instanceof Error && codeOf(error) === undefined ? (error.cause ?? error) : error;
      if (isTransient(cause) || isProgrammingError(cause)) throw error;
      return `cannot read from ${table} in ClickHouse: ${describeError(cause)}`;
    }
    try {
      await writer.checkInsert(kind);
    } catch (error) {
      if (isTransient(error) || isProgrammingError(error)) throw error;
      return `cannot insert into ${table} in ClickHouse: ${describeError(error)}`;
    }
  }
  return undefined;
}
