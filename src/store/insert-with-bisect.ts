// Inserts lines. If the store rejects some of them because of their content, finds them by bisection and inserts the rest. The
// bisection is deterministic, so a retry makes the same inserts.
import { offsetAfterLines } from '../domain/log-line.ts';

export interface BisectTarget {
  /** Inserts all of these lines or none. */
  insert(lines: Uint8Array, count: number): Promise<void>;
  /** Whether the error is about the content of the lines, so that a retry would fail, too. */
  isDataError(error: unknown): boolean;
  /** Called with each line that cannot be inserted. */
  reject(line: string, reason: string): void;
}

/** Inserts in the order of the lines. Throws errors that are not about the content; lines that were inserted before stay. */
export async function insertWithBisect(
  lines: Uint8Array,
  count: number,
  target: BisectTarget,
): Promise<void> {
  try {
    await target.insert(lines, count);
  } catch (error) {
    if (!target.isDataError(error)) throw error;
    if (count === 1) {
      target.reject(Buffer.from(lines).toString('utf8'), (error as Error).message.split('\n', 1)[0] ?? '');
      return;
    }
    const half = count >> 1;
    const middle = offsetAfterLines(lines, half);
    await insertWithBisect(lines.subarray(0, middle), half, target);
    await insertWithBisect(lines.subarray(middle), count - half, target);
  }
}
