// The checksum of records: the sum of their hashes. It does not depend on the order of the records, and the checksum of a merged
// part is the sum of the checksums of its sources.
import { columnsOf, type LogKind } from '../../domain/log-columns.ts';
import type { AfterBatch, Condition } from './copy-records.ts';
import type { DuckDBConnection } from './driver.ts';
import { ROW_GROUP_ROWS } from './parts.ts';

export interface Checksum {
  readonly rows: number;
  readonly sum: bigint;
}

export const EMPTY_CHECKSUM: Checksum = { rows: 0, sum: 0n };

/** Reads all columns of the records in a table that match the condition. */
export function readChecksum(
  connection: DuckDBConnection,
  kind: LogKind,
  table: string,
  condition: Condition = { sql: 'true', values: {} },
): Promise<Checksum> {
  const columns = columnsOf(kind).map(({ name }) => name);
  return readChecksumOfColumns(connection, columns, table, condition);
}

export async function readChecksumOfColumns(
  connection: DuckDBConnection,
  columns: readonly string[],
  table: string,
  { sql, values }: Condition,
): Promise<Checksum> {
  // A sum and not an exclusive or, in which two equal records would cancel each other out.
  const result = await connection.runAndReadAll(
    `select count(*), coalesce(sum(hash(${columns.join(', ')})::hugeint), 0) from ${table} where ${sql}`,
    { ...values },
  );
  return { rows: Number(result.value(0, 0)), sum: BigInt(String(result.value(1, 0))) };
}

/** Reads a table in batches of one row group, without the records that match `except`. */
export async function readChecksumInBatches(
  connection: DuckDBConnection,
  kind: LogKind,
  table: string,
  afterBatch: AfterBatch,
  except: Condition = { sql: 'false', values: {} },
): Promise<Checksum> {
  const last = await connection.runAndReadAll(`select max(rowid) from ${table}`);
  let total = EMPTY_CHECKSUM;
  for (let start = 0; start <= Number(last.value(0, 0) ?? -1); start += ROW_GROUP_ROWS) {
    const startedAt = performance.now();
    const batch = `rowid >= ${start} and rowid < ${start + ROW_GROUP_ROWS} and not (${except.sql})`;
    const condition = { sql: batch, values: except.values };
    total = addChecksums(total, await readChecksum(connection, kind, table, condition));
    await afterBatch(performance.now() - startedAt);
  }
  return total;
}

/** Compares what was written with what `read` returns. Returns a difference or an UnreadableError; throws any other error. */
export async function findDifference(
  written: Checksum,
  read: () => Promise<Checksum>,
): Promise<Error | undefined> {
  try {
    const found = await read();
    if (found.rows !== written.rows)
      return new Error(`the file has ${found.rows} of ${written.rows} records of a part`);
    if (found.sum !== written.sum)
      return new Error(`the ${found.rows} records of a part differ from those that were written`);
    return undefined;
  } catch (error) {
    if (error instanceof UnreadableError) return error;
    throw error;
  }
}

/** The records of a table cannot be read from the file. */
export class UnreadableError extends Error {}

export function addChecksums(one: Checksum, other: Checksum): Checksum {
  return { rows: one.rows + other.rows, sum: one.sum + other.sum };
}
