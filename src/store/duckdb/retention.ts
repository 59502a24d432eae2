// Removes records that are older than the store keeps them. DuckDB uses the space of whole row groups again; since a
// row group holds records that came in together, nearly all of an old one goes at once.
import { type DuckDBConnection, DuckDBTimestampValue } from '@duckdb/node-api';
import { LOG_KINDS } from '../../log-record.ts';
import { checkpoint } from './checkpoint.ts';

/** A kind at a time, so that other writers of the file wait for a short while only. Answers how many went. */
export async function deleteBefore(connection: DuckDBConnection, micros: bigint): Promise<number> {
  let deleted = 0;
  for (const kind of LOG_KINDS) {
    const { rowsChanged } = await connection.run(`delete from logs.${kind}_logs where timestamp < $before`, {
      before: new DuckDBTimestampValue(micros),
    });
    deleted += rowsChanged;
  }
  if (deleted > 0) await checkpoint(connection);
  return deleted;
}
