// What a store has to have before it can serve: its tables and their columns, the right to read them and the right to insert.
import { columnsOf, LOG_KINDS } from '../../domain/log-columns.ts';
import { codeOf, describeError, isTransient } from './errors.ts';
import type { Reader } from './reader.ts';
import type { Writer } from './writer.ts';

/** What is missing, in one sentence, or undefined. Throws where ClickHouse is out of reach. */
export async function runPreflight(reader: Reader, writer: Writer): Promise<string | undefined> {
  for (const kind of LOG_KINDS) {
    const table = `${kind}_logs`;
    const columns = columnsOf(kind).map(({ name }) => name);
    try {
      await reader.query({ sql: `select ${columns.join(', ')} from ${table} limit 0`, purpose: 'check' });
    } catch (error) {
      const cause = error instanceof Error && codeOf(error) === undefined ? (error.cause ?? error) : error;
      if (isTransient(cause)) throw error;
      return `ClickHouse cannot be read from (${table}): ${describeError(cause)}`;
    }
    try {
      await writer.checkInsert(kind);
    } catch (error) {
      if (isTransient(error)) throw error;
      return `ClickHouse cannot be inserted into (${table}): ${describeError(error)}`;
    }
  }
  return undefined;
}
