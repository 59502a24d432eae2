// Deletes records that are past their retention. Drops empty parts. In other parts DuckDB reuses the space of empty row groups, and
// compaction frees the space of single rows.
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { Checkpointer } from './checkpoint.ts';
import { type DuckDBConnection, DuckDBTimestampValue } from './driver.ts';
import { nameOf, type Part, type Parts } from './parts.ts';

/**
 * One transaction for each kind. Returns the number of deleted records. If a kind fails, such as at a damaged block, deletes the
 * expired records of the other kinds, then throws the first error. Must be called by the holder of the file mutex.
 */
export async function deleteBefore(
  connection: DuckDBConnection,
  parts: Parts,
  checkpointer: Checkpointer,
  micros: bigint,
): Promise<number> {
  const before = new DuckDBTimestampValue(micros);
  const errors: unknown[] = [];
  let deleted = 0;
  for (const kind of LOG_KINDS)
    try {
      deleted += await parts.transaction(() => deleteOfKind(connection, parts, kind, before));
    } catch (error) {
      errors.push(error);
    }
  if (deleted > 0) await checkpointer.run();
  if (errors.length > 0) throw errors[0];
  return deleted;
}

async function deleteOfKind(
  connection: DuckDBConnection,
  parts: Parts,
  kind: LogKind,
  before: DuckDBTimestampValue,
): Promise<number> {
  let deleted = 0;
  for (const part of parts.list(kind)) {
    if (parts.isReserved(part)) continue; // a rewrite may be copying it (part-rewriter.ts); a later run deletes from it
    // A deletion makes the checksum of a part unknown, and then the part cannot be verified. So an unverified part keeps its
    // expired records until it is verified or all of its records are expired.
    if (part.unverified !== undefined && !(await isExpired(connection, part, before))) continue;
    const { rowsChanged } = await connection.run(`delete from ${nameOf(part)} where timestamp < $before`, {
      before,
    });
    if (rowsChanged > 0) await parts.adjustRowCount(part, -rowsChanged);
    deleted += rowsChanged;
  }
  return deleted;
}

/** Whether all records of the part are older than `before`. */
async function isExpired(
  connection: DuckDBConnection,
  part: Part,
  before: DuckDBTimestampValue,
): Promise<boolean> {
  const result = await connection.runAndReadAll(`select max(timestamp) < $before from ${nameOf(part)}`, {
    before,
  });
  return result.value(0, 0) === true;
}
