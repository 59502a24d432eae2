// Checks at start that ClickHouse has the tables and columns, and that the ClickHouse users of Dendro may read and insert.

import { isProgrammingError } from '../../domain/errors.ts';
import { columnsOf, LOG_KINDS } from '../../domain/log-columns.ts';
import { causeOf, codeOf, describeError, isTransient } from './errors.ts';
import type { Reader } from './reader.ts';
import type { Writer } from './writer.ts';

/** ClickHouse's code for a column that does not exist. */
const UNKNOWN_IDENTIFIER = 47;

/**
 * Returns what is missing, in one sentence, or undefined. Throws as Store.query does if the check could not be made: for transient
 * errors, such as an unreachable server, and for programming errors.
 */
export async function findTableProblem(reader: Reader, writer: Writer): Promise<string | undefined> {
  for (const kind of LOG_KINDS) {
    const table = `${kind}_logs`;
    const columns = columnsOf(kind).map(({ name }) => name);
    const select = { sql: `select ${columns.join(', ')} from ${table} limit 0`, purpose: 'check' } as const;
    const problem =
      (await findProblem(`read from ${table}`, () => reader.query(select))) ??
      (await findProblem(`insert into ${table}`, () => writer.checkInsert(kind)));
    if (problem !== undefined) return problem;
  }
  return undefined;
}

async function findProblem(action: string, check: () => Promise<unknown>): Promise<string | undefined> {
  try {
    await check();
    return undefined;
  } catch (error) {
    const cause = causeOf(error);
    if (isTransient(cause) || isProgrammingError(cause)) throw error;
    const advice =
      codeOf(cause) === UNKNOWN_IDENTIFIER
        ? 'a column does not exist; after an upgrade, run `dendro schema clickhouse --apply` to add it: '
        : '';
    return `cannot ${action} in ClickHouse: ${advice}${describeError(cause)}`;
  }
}
