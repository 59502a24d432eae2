// Cuts a stream of bytes behind line ends, with bounded memory. In UTF-8 no other character contains a newline's byte.
import type { LogChunk } from './log-piece.ts';
import type { Rejection } from './rejection.ts';

const NEWLINE = 0x0a;

/** Whole lines, as many as came at once. A line that is longer than allowed is passed over, and one rejection. */
export async function* readLinePieces(
  chunks: AsyncIterable<Buffer>,
  maxLineBytes: number,
  tooLong: Rejection,
): AsyncGenerator<LogChunk> {
  let begun: Buffer[] = [];
  let begunBytes = 0;
  for await (const chunk of chunks) {
    const firstEnd = chunk.indexOf(NEWLINE) + 1;
    const lastEnd = chunk.lastIndexOf(NEWLINE) + 1;
    if (lastEnd > 0) {
      const isTooLong = begunBytes + firstEnd - 1 > maxLineBytes;
      if (isTooLong) yield { rejection: tooLong };
      const lines = isTooLong
        ? chunk.subarray(firstEnd, lastEnd)
        : Buffer.concat([...begun, chunk.subarray(0, lastEnd)]);
      if (lines.length > 0) yield { lines };
      begun = [];
      begunBytes = 0;
    }
    begunBytes += chunk.length - lastEnd;
    if (begunBytes > maxLineBytes) begun = [];
    else begun.push(chunk.subarray(lastEnd));
  }
  if (begunBytes > maxLineBytes) yield { rejection: tooLong };
  else if (begunBytes > 0) yield { lines: Buffer.concat(begun) };
}
