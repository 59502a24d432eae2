// Reads NDJSON as it comes, or a JSON file whole, and tells which of the two it is from the first line.
import { OperatorError } from '../domain/errors.ts';
import { parseExactJson } from './exact-json.ts';
import { type LogChunk, toChunks } from './log-piece.ts';
import { isBatch, parseJsonBody } from './parse.ts';
import type { PeekableBytes } from './peekable-bytes.ts';
import { readLinePieces } from './read-line-pieces.ts';
import type { Rejection } from './rejection.ts';

/** A longer line is passed over and counts as one rejected record. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** A JSON file has to be in memory whole, several times over, and V8 ends a string at 512 MiB. */
const MAX_JSON_BYTES = 256 * 1024 * 1024;
const VALUES_PER_PIECE = 1000;

/** UTF-8 text as pieces of NDJSON. Throws OperatorError if it is not JSON. */
export async function* readText(bytes: PeekableBytes): AsyncGenerator<LogChunk> {
  const mark = await bytes.peek(beginning => beginning.length >= 3);
  if (mark.toString('utf8', 0, 3) === '\ufeff') bytes.skip(3);
  const head = await bytes.peek(tellsTheForm);
  const beginning = head.toString('utf8').trimStart();
  if (beginning === '' || isNdjson(beginning, head.length))
    yield* readLinePieces(bytes, MAX_LINE_BYTES, LINE_TOO_LONG);
  else if (/^[[{]/.test(beginning)) yield* readJson(bytes);
  else throw new OperatorError('its first line is not JSON; it has to be NDJSON, JSON or Parquet');
}

function tellsTheForm(head: Buffer): boolean {
  if (head.length > MAX_LINE_BYTES) return true;
  const first = head.findIndex(byte => byte > 0x20);
  return first !== -1 && head.includes('\n', first);
}

function isNdjson(beginning: string, headBytes: number): boolean {
  const lineEnd = beginning.indexOf('\n');
  if (lineEnd === -1 && headBytes > MAX_LINE_BYTES) {
    // Too long to look into. A record like that is rejected and those after it are read; a batch may be this long.
    return !/^(?:\[|\{\s*"batch"\s*:\s*\[)/.test(beginning);
  }
  try {
    return !isBatch(parseExactJson(lineEnd === -1 ? beginning : beginning.slice(0, lineEnd)));
  } catch {
    return false;
  }
}

const LINE_TOO_LONG: Rejection = {
  code: 'too_large',
  message: 'The line is longer than 16 MiB; a record may have 1 MiB.',
};

async function* readJson(bytes: AsyncIterable<Buffer>): AsyncGenerator<LogChunk> {
  const values = parseJsonBody(await readWhole(bytes));
  for (let start = 0; start < values.length; start += VALUES_PER_PIECE) {
    yield* toChunks(values.slice(start, start + VALUES_PER_PIECE));
  }
}

async function readWhole(bytes: AsyncIterable<Buffer>): Promise<string> {
  const chunks: Buffer[] = [];
  let byteCount = 0;
  for await (const chunk of bytes) {
    chunks.push(chunk);
    byteCount += chunk.length;
    if (byteCount > MAX_JSON_BYTES) {
      throw new OperatorError(
        'JSON of more than 256 MiB does not fit in memory; as NDJSON, one record a line, it may have any size (jq -c ".[]" makes that)',
      );
    }
  }
  return Buffer.concat(chunks).toString('utf8');
}
