// Copies a table into another, sorted by project and time, a slice of the projects after the other: sorted at once, 122,880
// records took 300 MB more than in four slices, and no less time.
import type { DuckDBConnection, DuckDBListValue } from '@duckdb/node-api';
import { SEALED_ORDER } from './append.ts';

const SLICE_BYTES = 32 * 1024 * 1024;

export async function copySorted(
  connection: DuckDBConnection,
  from: string,
  to: string,
  bytes: number,
): Promise<void> {
  const ends = await sliceEnds(connection, from, Math.ceil(bytes / SLICE_BYTES));
  for (const [index, end] of ends.entries()) {
    const start = ends[index - 1] ?? null;
    await connection.run(
      `insert into ${to} from ${from}
      where ($start is null or project > $start) and ($end is null or project <= $end) ${SEALED_ORDER}`,
      { start, end },
    );
  }
}

/** The last project of each slice, in their order; null for the last slice, which goes on to the end. */
async function sliceEnds(
  connection: DuckDBConnection,
  table: string,
  slices: number,
): Promise<(string | null)[]> {
  if (slices <= 1) return [null];
  const shares = Array.from({ length: slices - 1 }, (_, index) => (index + 1) / slices);
  const reader = await connection.runAndReadAll(`select quantile_disc(project, [${shares}]) from ${table}`);
  const found = (reader.value(0, 0) as DuckDBListValue | null)?.items ?? [];
  return [...new Set(found.map(String)), null];
}
