// Inserts lines; where the store refuses some of them for what they hold, finds those and keeps the rest. The lines are
// always halved in the same places, so that whoever does it again does the same.
import { offsetAfterLines } from '../domain/log-line.ts';

export interface BisectTarget {
  /** Inserts all of these lines or none. */
  insert(lines: Uint8Array, count: number): Promise<void>;
  /** The error is about the data: it will not be gone the next time. */
  isDataError(error: unknown): boolean;
  /** Is told of a line that cannot be inserted. */
  reject(line: string, reason: string): void;
}

/** Goes from the first line to the last. Throws errors that are not about the data; those before stay inserted. */
export async function insertWithBisect(
  lines: Uint8Array,
  count: number,
  narrowing: BisectTarget,
): Promise<void> {
  try {
    await narrowing.insert(lines, count);
  } catch (error) {
    if (!narrowing.isDataError(error)) throw error;
    if (count === 1) {
      narrowing.reject(Buffer.from(lines).toString('utf8'), (error as Error).message.split('\n', 1)[0] ?? '');
      return;
    }
    const half = count >> 1;
    const middle = offsetAfterLines(lines, half);
    await insertWithBisect(lines.subarray(0, middle), half, narrowing);
    await insertWithBisect(lines.subarray(middle), count - half, narrowing);
  }
}
