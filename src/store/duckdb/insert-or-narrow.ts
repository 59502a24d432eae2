// Inserts lines; where the store refuses some of them for what they hold, finds those and keeps the rest.
import { endOfLines } from '../../log-line.ts';

/** What DuckDB says of data that it cannot take. Every other error (disk, memory) may be gone the next time. */
const DATA_ERROR = /^(Conversion|Invalid Input|Constraint|Out of Range|Invalid type|Cast) Error/i;

export interface LineTaker {
  /** Inserts all of these lines or none. */
  insert(lines: Uint8Array, count: number): Promise<void>;
  /** Is told of a line that cannot be inserted. */
  refuse(line: string, reason: string): void;
}

/** Goes from the first line to the last. Throws errors that are not about the data; those before stay inserted. */
export async function insertOrNarrow(lines: Uint8Array, count: number, taker: LineTaker): Promise<void> {
  try {
    await taker.insert(lines, count);
  } catch (error) {
    const { message } = error as Error;
    if (!DATA_ERROR.test(message)) throw error;
    if (count === 1) {
      taker.refuse(Buffer.from(lines).toString('utf8'), message.split('\n', 1)[0] ?? '');
      return;
    }
    const half = count >> 1;
    const middle = endOfLines(lines, half);
    await insertOrNarrow(lines.subarray(0, middle), half, taker);
    await insertOrNarrow(lines.subarray(middle), count - half, taker);
  }
}
