// Removes records that are older than the store keeps them. A table of which nothing is left is dropped; of the others
// DuckDB uses the space of whole row groups again, and a merge that of single rows.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { Checkpointer } from './checkpoint.ts';
import { type DuckDBConnection, DuckDBTimestampValue } from './driver.ts';
import { nameOf, type Parts } from './parts.ts';

/** A kind at a time. Answers how many records went. */
export async function deleteBefore(
  connection: DuckDBConnection,
  sealed: Parts,
  checkpoints: Checkpointer,
  micros: bigint,
): Promise<number> {
  const before = new DuckDBTimestampValue(micros);
  let deleted = 0;
  for (const kind of LOG_KINDS)
    await sealed.transaction(async () => {
      for (const table of sealed.list(kind)) {
        if (sealed.isReserved(table)) continue; // until it is merged
        const { rowsChanged } = await connection.run(
          `delete from ${nameOf(table)} where timestamp < $before`,
          { before },
        );
        if (rowsChanged > 0) await sealed.changeRows(table, -rowsChanged);
        deleted += rowsChanged;
      }
    });
  if (deleted > 0) await checkpoints.run();
  return deleted;
}
