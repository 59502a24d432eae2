// Inserts lines; where the store refuses some of them for what they hold, finds those and keeps the rest. The lines are
// always halved in the same places, so that whoever does it again does the same.
import { endOfLines } from '../log-line.ts';

export interface Narrowing {
  readonly insert: (lines: Uint8Array, count: number) => Promise<void>;
  /** The error is about the data: it will not be gone the next time. */
  readonly isDataError: (error: unknown) => boolean;
  readonly refuse: (line: string, reason: string) => void;
}

/** Answers how many lines were inserted. Throws errors that are not about the data. */
export async function insertOrNarrow(
  lines: Uint8Array,
  count: number,
  narrowing: Narrowing,
): Promise<number> {
  try {
    await narrowing.insert(lines, count);
    return count;
  } catch (error) {
    if (!narrowing.isDataError(error)) throw error;
    if (count === 1) {
      narrowing.refuse(Buffer.from(lines).toString('utf8'), (error as Error).message.split('\n', 1)[0] ?? '');
      return 0;
    }
    const half = count >> 1;
    const middle = endOfLines(lines, half);
    return (
      (await insertOrNarrow(lines.subarray(0, middle), half, narrowing)) +
      (await insertOrNarrow(lines.subarray(middle), count - half, narrowing))
    );
  }
}
