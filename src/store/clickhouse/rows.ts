// Converts log lines to the rows of an insert, and back. The format is JSONEachRow, which every version of ClickHouse reads. Each
// row has the text of the metadata as a JSON string. Compresses rows with gzip.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { promisify } from 'node:util';
import { constants, gunzip, gzip } from 'node:zlib';
import { type LineColumns, readLogLine, writeLogLine } from '../../domain/log-line.ts';

/** About how many bytes are converted at a time. Between two chunks, this thread can do other work. */
const CHUNK_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/** Converts lines to uncompressed rows. */
export async function toRows(lines: Uint8Array): Promise<Buffer> {
  const bytes = Buffer.from(lines.buffer, lines.byteOffset, lines.byteLength);
  const chunks: Buffer[] = [];
  for (let start = 0; start < bytes.length; ) {
    const newline = bytes.indexOf(NEWLINE, Math.min(start + CHUNK_BYTES, bytes.length - 1));
    const end = newline === -1 ? bytes.length : newline + 1;
    chunks.push(Buffer.from(bytes.toString('utf8', start, end).split('\n').map(toRow).join('\n')));
    start = end;
    await yieldToEventLoop();
  }
  return Buffer.concat(chunks);
}

/** A line of an unknown format becomes a JSON string. ClickHouse rejects it as a row, so the line is quarantined. */
function toRow(line: string): string {
  return line === '' ? '' : JSON.stringify(readLogLine(line) ?? line);
}

/** The inverse of `toRow`: returns a line that `toRow` converts to this row. */
export function toLine(row: string): string {
  const columns = JSON.parse(row) as LineColumns | string;
  return typeof columns === 'string' ? `${columns}\n` : writeLogLine(columns);
}

export function compress(rows: Uint8Array): Promise<Buffer> {
  return promisify(gzip)(rows, { level: constants.Z_BEST_SPEED });
}

export function decompress(compressed: Uint8Array): Promise<Buffer> {
  return promisify(gunzip)(compressed);
}
