// Cuts a stream of bytes into lines of text, with bounded memory.

/** Stands for a line that was longer than allowed; its bytes were passed over. */
export const TOO_LONG = Symbol('too long a line');

const NEWLINE = 0x0a;
const LINES_PER_ARRAY = 4096;

/**
 * The lines of a stream that are not empty, some at a time. Bytes that are not UTF-8 become U+FFFD.
 * Lines are cut as bytes and decoded whole, so no character is torn: in UTF-8 no other character contains a newline's byte.
 */
export async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxLineBytes: number,
): AsyncGenerator<readonly (string | typeof TOO_LONG)[]> {
  let begun: Buffer[] = [];
  let begunBytes = 0;
  const finishLine = (end: Buffer): string | typeof TOO_LONG => {
    const isTooLong = begunBytes + end.length > maxLineBytes;
    const line = isTooLong ? TOO_LONG : decode(begun.length === 0 ? end : Buffer.concat([...begun, end]));
    begun = [];
    begunBytes = 0;
    return line;
  };

  for await (const chunk of chunks) {
    const lines: (string | typeof TOO_LONG)[] = [];
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end !== -1; end = chunk.indexOf(NEWLINE, start)) {
      if (end > start || begunBytes > 0) lines.push(finishLine(chunk.subarray(start, end)));
      start = end + 1;
      if (lines.length === LINES_PER_ARRAY) yield lines.splice(0);
    }
    if (start < chunk.length) {
      begunBytes += chunk.length - start;
      if (begunBytes > maxLineBytes) begun = [];
      else begun.push(chunk.subarray(start));
    }
    if (lines.length > 0) yield lines;
  }
  if (begunBytes > 0) yield [finishLine(Buffer.alloc(0))];
}

function decode(line: Buffer): string {
  return line.toString('utf8');
}
