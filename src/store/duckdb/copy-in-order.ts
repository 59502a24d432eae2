// Copies a table as it lies, a row group after the other.
import type { DuckDBConnection } from './driver.ts';
import { ROW_GROUP_ROWS } from './parts.ts';

/** Answers how many records were copied. */
export async function copyInOrder(
  connection: DuckDBConnection,
  from: string,
  to: string,
  afterSlice: (ms: number) => Promise<void>,
): Promise<number> {
  const last = await connection.runAndReadAll(`select max(rowid) from ${from}`);
  let copied = 0;
  for (let start = 0; start <= Number(last.value(0, 0) ?? -1); start += ROW_GROUP_ROWS) {
    const startedAt = performance.now();
    const { rowsChanged } = await connection.run(
      `insert into ${to} from ${from} where rowid >= ${start} and rowid < ${start + ROW_GROUP_ROWS}`,
    );
    copied += rowsChanged;
    await afterSlice(performance.now() - startedAt);
  }
  return copied;
}
