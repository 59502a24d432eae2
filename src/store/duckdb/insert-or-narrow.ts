// Inserts lines; where the store refuses some of them for what they hold, finds those and keeps the rest.
import { endOfLines } from '../../log-line.ts';

/** What DuckDB says of data that it cannot take. Every other error (disk, memory) may be gone the next time. */
const DATA_ERROR = /^(Conversion|Invalid Input|Constraint|Out of Range|Invalid type|Cast) Error/i;

/** In order, so that whoever inserts knows how far it came when an error that is not about the data ends it. */
export async function insertOrNarrow(
  lines: Uint8Array,
  count: number,
  insert: (lines: Uint8Array, count: number) => Promise<void>,
  refuse: (line: string, reason: string) => void,
): Promise<void> {
  try {
    await insert(lines, count);
  } catch (error) {
    const { message } = error as Error;
    if (!DATA_ERROR.test(message)) throw error;
    if (count === 1) {
      refuse(Buffer.from(lines).toString('utf8'), message.split('\n', 1)[0] ?? '');
      return;
    }
    const half = count >> 1;
    const middle = endOfLines(lines, half);
    await insertOrNarrow(lines.subarray(0, middle), half, insert, refuse);
    await insertOrNarrow(lines.subarray(middle), count - half, insert, refuse);
  }
}
