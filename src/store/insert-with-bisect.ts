// Inserts rows, given as text with one row per line in the format of the store. If the store rejects some of them because of
// their content, finds them by bisection and inserts the rest. The bisection is deterministic, so a retry makes the same inserts.
import { offsetAfterLines } from '../domain/log-line.ts';

export interface BisectTarget {
  /** Inserts all of these rows or none. */
  insert(rows: Uint8Array, count: number): Promise<void>;
  /** Whether the error is about the content of a row, so that a retry would fail, too. */
  isRowError(error: unknown): boolean;
  /** Called with each row that cannot be inserted. */
  reject(row: string, reason: string): void;
}

/** Inserts in the order of the rows. Throws errors that are not about the content; rows that were inserted before stay. */
export async function insertWithBisect(rows: Uint8Array, count: number, target: BisectTarget): Promise<void> {
  try {
    await target.insert(rows, count);
  } catch (error) {
    if (!target.isRowError(error)) throw error;
    if (count === 1) {
      target.reject(Buffer.from(rows).toString('utf8'), (error as Error).message.split('\n', 1)[0] ?? '');
      return;
    }
    const half = count >> 1;
    const middle = offsetAfterLines(rows, half);
    await insertWithBisect(rows.subarray(0, middle), half, target);
    await insertWithBisect(rows.subarray(middle), count - half, target);
  }
}
