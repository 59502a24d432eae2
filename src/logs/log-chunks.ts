// Splits the text of a log file, NDJSON or JSON, into chunks of NDJSON that fit in memory. NDJSON is
// split without parsing its records. A JSON file is parsed and written again as lines. Does not validate records.
import { OperatorError } from '../domain/errors.ts';
import { parseExactJson, stringifyExactJson } from './exact-json.ts';
import { isBatch, type ParseResult, parseJsonBody } from './parse.ts';
import type { PeekableBytes } from './peekable-bytes.ts';
import type { Rejection } from './rejection.ts';

/** Complete lines of NDJSON, or the rejection of one record, such as a line that is too long. */
export type LogChunk = { readonly lines: Uint8Array } | { readonly rejection: Rejection };

/** A longer line is skipped and counts as one rejected record. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;
/** A JSON file is read into memory as a whole and takes several times its size there. V8 limits a string to 512 MiB. */
const MAX_JSON_BYTES = 256 * 1024 * 1024;
const VALUES_PER_CHUNK = 1000;
const NEWLINE = 0x0a;

const LINE_TOO_LONG: Rejection = {
  code: 'too_large',
  message: 'The line is longer than 16 MiB. The maximum for a record is 1 MiB.',
};
const TOO_DEEP: Rejection = {
  code: 'too_deep',
  message: 'The record is nested too deeply to be written as a line.',
};

/**
 * Reads UTF-8 text as chunks of NDJSON. The first line determines the format. Throws OperatorError if that line is not JSON and does
 * not begin with `[` or `{`, or if a JSON file exceeds MAX_JSON_BYTES. Throws `invalid_body` if a JSON file is not valid.
 */
export async function* readTextChunks(bytes: PeekableBytes): AsyncGenerator<LogChunk> {
  const firstBytes = await bytes.peek(head => head.length >= 3);
  if (firstBytes.toString('utf8', 0, 3) === '\ufeff') bytes.skip(3);
  const head = await bytes.peek(hasFirstLine);
  const text = head.toString('utf8').trimStart();
  if (text === '' || isNdjson(text, head.length)) yield* readLineChunks(bytes);
  else if (/^[[{]/.test(text)) yield* readJsonChunks(bytes);
  else throw new OperatorError('the first line is not JSON; the file must be NDJSON, JSON or Parquet');
}

/** Writes parsed values as lines of NDJSON. */
export function* toChunks(values: readonly ParseResult[]): Generator<LogChunk> {
  let lines: string[] = [];
  const flush = function* (): Generator<LogChunk> {
    if (lines.length > 0) yield { lines: Buffer.from(lines.join('')) };
    lines = [];
  };
  for (const parsed of values) {
    const result = 'rejection' in parsed ? parsed.rejection : toLine(parsed.value);
    if (typeof result === 'string') lines.push(result);
    else {
      yield* flush();
      yield { rejection: result };
    }
  }
  yield* flush();
}

function toLine(value: unknown): string | Rejection {
  try {
    return `${stringifyExactJson(value)}\n`;
  } catch {
    return TOO_DEEP;
  }
}

function hasFirstLine(head: Buffer): boolean {
  if (head.length > MAX_LINE_BYTES) return true;
  const start = head.findIndex(byte => byte > 0x20);
  return start !== -1 && head.includes('\n', start);
}

function isNdjson(text: string, headBytes: number): boolean {
  const lineEnd = text.indexOf('\n');
  if (lineEnd === -1 && headBytes > MAX_LINE_BYTES) {
    // The line is too long to parse, so its start decides. A batch may be this long, so the file is JSON. Anything else counts
    // as NDJSON, and readLineChunks rejects the line.
    return !/^(?:\[|\{\s*"batch"\s*:\s*\[)/.test(text);
  }
  try {
    return !isBatch(parseExactJson(lineEnd === -1 ? text : text.slice(0, lineEnd)));
  } catch {
    return false;
  }
}

/**
 * Yields the complete lines of each block of bytes, with bounded memory. A line over MAX_LINE_BYTES is skipped and yields
 * one rejection. Searching for the byte 0x0a is safe because UTF-8 uses it for a newline only.
 */
async function* readLineChunks(blocks: AsyncIterable<Buffer>): AsyncGenerator<LogChunk> {
  let partialLine: Buffer[] = [];
  let partialLineBytes = 0;
  for await (const block of blocks) {
    const firstEnd = block.indexOf(NEWLINE) + 1;
    const lastEnd = block.lastIndexOf(NEWLINE) + 1;
    if (lastEnd > 0) {
      const isTooLong = partialLineBytes + firstEnd - 1 > MAX_LINE_BYTES;
      if (isTooLong) yield { rejection: LINE_TOO_LONG };
      const lines = isTooLong
        ? block.subarray(firstEnd, lastEnd)
        : Buffer.concat([...partialLine, block.subarray(0, lastEnd)]);
      if (lines.length > 0) yield { lines };
      partialLine = [];
      partialLineBytes = 0;
    }
    partialLineBytes += block.length - lastEnd;
    if (partialLineBytes > MAX_LINE_BYTES) partialLine = [];
    else partialLine.push(block.subarray(lastEnd));
  }
  if (partialLineBytes > MAX_LINE_BYTES) yield { rejection: LINE_TOO_LONG };
  else if (partialLineBytes > 0) yield { lines: Buffer.concat(partialLine) };
}

async function* readJsonChunks(bytes: AsyncIterable<Buffer>): AsyncGenerator<LogChunk> {
  const values = parseJsonBody(await readWhole(bytes));
  for (let start = 0; start < values.length; start += VALUES_PER_CHUNK) {
    yield* toChunks(values.slice(start, start + VALUES_PER_CHUNK));
  }
}

async function readWhole(bytes: AsyncIterable<Buffer>): Promise<string> {
  const blocks: Buffer[] = [];
  let totalBytes = 0;
  for await (const block of bytes) {
    blocks.push(block);
    totalBytes += block.length;
    if (totalBytes > MAX_JSON_BYTES) {
      throw new OperatorError(
        'a JSON file must not be larger than 256 MiB; convert it to NDJSON, which has no limit (jq -c ".[]")',
      );
    }
  }
  return Buffer.concat(blocks).toString('utf8');
}
