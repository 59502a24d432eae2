// Lines of the spool as rows that every version of ClickHouse reads: JSON, with the metadata as a text in it.
import { setImmediate as nextTurn } from 'node:timers/promises';
import { type LineColumns, readLogLine, writeLogLine } from '../../domain/log-line.ts';

/** As many bytes at a time: whoever else waits for this thread gets a turn in between. */
const SLICE_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

export async function toRows(lines: Uint8Array): Promise<Buffer> {
  const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
  const parts: Buffer[] = [];
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(NEWLINE, Math.min(start + SLICE_BYTES, bytes.length - 1));
    const end = found === -1 ? bytes.length : found + 1;
    parts.push(Buffer.from(bytes.toString('utf8', start, end).split('\n').map(toRow).join('\n')));
    start = end;
    await nextTurn();
  }
  return Buffer.concat(parts);
}

function toRow(line: string): string {
  return line === '' ? '' : JSON.stringify(readLogLine(line) ?? line); // a mere text is refused as a row
}

/** The line that a row was made of. */
export function toLine(row: string): string {
  const columns = JSON.parse(row) as LineColumns | string;
  return typeof columns === 'string' ? `${columns}\n` : writeLogLine(columns);
}
