// Reads a log file for `dendro ingest`: NDJSON or JSON, optionally with gzip compression, or Parquet. Detects the format by
// content, never by file name. Yields chunks of NDJSON that fit in memory: NDJSON is split without parsing its records; the values
// of a JSON or Parquet file are written as lines. Does not validate records.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { OperatorError } from '../domain/errors.ts';
import { MAX_FILE_LINE_BYTES, MAX_JSON_FILE_BYTES } from '../domain/limits.ts';
import { parseExactJson, stringifyExactJson } from './exact-json.ts';
import { isBatch, type ParseResult, parseJsonBody } from './parse.ts';
import { readParquet } from './read-parquet.ts';
import type { Rejection } from './rejection.ts';

/** Complete lines of NDJSON, or the rejection of one record, such as a line that is too long. */
export type LogChunk = { readonly lines: Uint8Array } | { readonly rejection: Rejection };

type Bytes = AsyncIterable<Buffer>;

/** About a thousand records: passing a chunk to a worker thread then costs little compared to parsing it. */
const CHUNK_BYTES = 1024 * 1024;
const VALUES_PER_CHUNK = 1000;
const NEWLINE = 0x0a;
const BYTE_ORDER_MARK = Buffer.from('\ufeff');

const LINE_TOO_LONG: Rejection = {
  code: 'too_large',
  message: 'The line is longer than 16 MiB. The maximum for a record is 1 MiB.',
};
const TOO_DEEP: Rejection = {
  code: 'too_deep',
  message: 'The record is nested too deeply to be written as a line.',
};

export interface ReadProgress {
  /** Bytes read from the file on disk, before decompression. */
  readonly bytesRead: number;
  /** Undefined for standard input and pipes. */
  readonly totalBytes: number | undefined;
}

export interface ReadOptions {
  readonly onProgress?: (progress: ReadProgress) => void;
  /** Gets all bytes of the content in order, decompressed; for Parquet, the bytes of the file itself. */
  readonly onContent?: (bytes: Buffer) => void;
  /** The stream for the path `-`. Default: process.stdin. */
  readonly standardInput?: Readable;
}

/**
 * Reads a file, or standard input for `-`, as chunks of NDJSON. Throws OperatorError if the file cannot be read, has an unknown
 * format, or is a JSON file that is not valid or too large. The message is one line that names the file.
 */
export async function* readLogFile(path: string, options: ReadOptions = {}): AsyncGenerator<LogChunk> {
  const { onContent = () => {}, standardInput = process.stdin } = options;
  let input: Readable | undefined;
  try {
    const totalBytes = path === '-' ? undefined : await readSize(path);
    input = path === '-' ? standardInput : openFile(path);
    const report = (bytesRead: number) => options.onProgress?.({ bytesRead, totalBytes });
    const { head, bytes } = await readMagic(input);
    if (isParquet(head)) {
      if (totalBytes === undefined) throw new OperatorError(PARQUET_NEEDS_FILE);
      // Reads the whole file for `onContent` only; DuckDB reads it again for the rows. Not reported as progress, because it is
      // fast compared to reading the rows.
      if (options.onContent !== undefined) for await (const chunk of bytes) onContent(chunk);
      const onProgress = (fraction: number) => report(Math.round(fraction * totalBytes));
      for await (const values of readParquet(path, onProgress)) yield* toChunks(values);
      report(totalBytes); // a file without rows has had no report yet
    } else {
      let bytesRead = 0;
      const counted = withCallback(bytes, chunk => {
        bytesRead += chunk.length;
        report(bytesRead);
      });
      yield* readText(toBlocks(withCallback(isGzip(head) ? gunzip(counted) : counted, onContent)));
    }
  } catch (error) {
    throw new OperatorError(`${path === '-' ? 'standard input' : path}: ${describeReadError(error)}`, {
      cause: error,
    });
  } finally {
    input?.destroy();
  }
}

/** Returns the SHA-256 of the content of a file, as `onContent` gets it. */
export async function digestLogFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  const input = openFile(path);
  try {
    const { head, bytes } = await readMagic(input);
    for await (const block of isGzip(head) ? gunzip(bytes) : bytes) hash.update(block);
    return hash.digest('hex');
  } finally {
    input.destroy();
  }
}

const PARQUET_NEEDS_FILE =
  'Parquet is only supported as a regular file without gzip compression; save it to disk first';

function isGzip(head: Buffer): boolean {
  return head[0] === 0x1f && head[1] === 0x8b;
}

function isParquet(head: Buffer): boolean {
  return head.toString('latin1', 0, 4) === 'PAR1';
}

/** Returns undefined unless the path is a regular file; a named pipe has no size. */
async function readSize(path: string): Promise<number | undefined> {
  const file = await stat(path);
  return file.isFile() ? file.size : undefined;
}

function openFile(path: string): Readable {
  return createReadStream(path, { highWaterMark: CHUNK_BYTES });
}

/** Reads the bytes by which a format is recognized. */
function readMagic(input: Readable): Promise<{ readonly head: Buffer; readonly bytes: Bytes }> {
  return readHead(input, head => head.length >= 4);
}

/** Reads until `isEnough(head)`, or to the end. `bytes` are all bytes, the head included: a pipe cannot be read a second time. */
async function readHead(
  source: Bytes,
  isEnough: (head: Buffer) => boolean,
): Promise<{ readonly head: Buffer; readonly bytes: Bytes }> {
  const iterator = source[Symbol.asyncIterator]();
  let head = Buffer.alloc(0);
  while (!isEnough(head)) {
    const next = await iterator.next();
    if (next.done === true) break;
    head = Buffer.concat([head, next.value]);
  }
  return { head, bytes: concatenate(head, iterator) };
}

async function* concatenate(head: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  yield head;
  yield* { [Symbol.asyncIterator]: () => rest };
}

async function* withCallback(bytes: Bytes, callback: (bytes: Buffer) => void): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    callback(chunk);
    yield chunk;
  }
}

/**
 * Regroups bytes into blocks of exactly CHUNK_BYTES, except the last one. The chunks of a file then depend on its content only,
 * not on the way a pipe or a decompressor delivers it, so a repeated load sends the same batches.
 */
async function* toBlocks(bytes: Bytes): AsyncGenerator<Buffer> {
  let pending: Buffer[] = [];
  let missingBytes = CHUNK_BYTES;
  for await (const chunk of bytes) {
    let rest = chunk;
    while (rest.length >= missingBytes) {
      const end = rest.subarray(0, missingBytes);
      yield pending.length === 0 ? end : Buffer.concat([...pending, end]);
      rest = rest.subarray(missingBytes);
      pending = [];
      missingBytes = CHUNK_BYTES;
    }
    if (rest.length === 0) continue;
    pending.push(rest);
    missingBytes -= rest.length;
  }
  if (pending.length > 0) yield Buffer.concat(pending);
}

async function* gunzip(bytes: Bytes): AsyncGenerator<Buffer> {
  const decompressed = createGunzip({ chunkSize: CHUNK_BYTES });
  let readBytes = 0;
  let lastNonZero = 0;
  const watched = withCallback(bytes, chunk => {
    const index = chunk.findLastIndex(byte => byte !== 0);
    if (index !== -1) lastNonZero = readBytes + index + 1;
    readBytes += chunk.length;
  });
  // An error on either side destroys `decompressed` with that error, so its reader receives it.
  const ended = new Promise<void>(resolve => {
    pipeline(Readable.from(watched), decompressed, () => resolve());
  });
  yield* decompressed;
  await ended;
  // Node takes a zero byte after a gzip member for padding, and ignores all that follows, even further members.
  if (lastNonZero > decompressed.bytesWritten) throw new Error(REASONS['Z_DATA_ERROR']);
}

/** The first line determines whether the text is NDJSON or JSON. */
async function* readText(blocks: Bytes): AsyncGenerator<LogChunk> {
  const { head, bytes } = await readHead(blocks, hasFirstLine);
  if (isParquet(head)) throw new OperatorError(PARQUET_NEEDS_FILE);
  const text = head
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .trimStart();
  if (text === '' || isNdjson(text, head.length)) yield* readLines(withoutMark(bytes));
  else if (/^[[{]/.test(text)) yield* readJson(withoutMark(bytes));
  else throw new OperatorError('the first line is not JSON; the file must be NDJSON, JSON or Parquet');
}

/** The first chunk has at least the bytes of the mark, if there are as many. */
async function* withoutMark(bytes: Bytes): AsyncGenerator<Buffer> {
  let isFirst = true;
  for await (const chunk of bytes) {
    const hasMark = isFirst && chunk.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
    yield hasMark ? chunk.subarray(BYTE_ORDER_MARK.length) : chunk;
    isFirst = false;
  }
}

function hasFirstLine(head: Buffer): boolean {
  if (head.length > MAX_FILE_LINE_BYTES) return true;
  const start = head.findIndex(byte => byte > 0x20);
  return start !== -1 && head.includes('\n', start);
}

function isNdjson(text: string, headBytes: number): boolean {
  const lineEnd = text.indexOf('\n');
  if (lineEnd === -1 && headBytes > MAX_FILE_LINE_BYTES) {
    // The line is too long to parse, so its start decides. A batch may be this long, so the file is JSON. Anything else counts
    // as NDJSON, and readLines rejects the line.
    return !/^(?:\[|\{\s*"batch"\s*:\s*\[)/.test(text);
  }
  try {
    return !isBatch(parseExactJson(lineEnd === -1 ? text : text.slice(0, lineEnd)));
  } catch {
    return false;
  }
}

/**
 * Yields the complete lines of each block of bytes, with bounded memory. A line over MAX_FILE_LINE_BYTES is skipped and yields
 * one rejection. Searching for the byte 0x0a is safe because UTF-8 uses it for a newline only.
 */
async function* readLines(blocks: Bytes): AsyncGenerator<LogChunk> {
  let partialLine: Buffer[] = [];
  let partialLineBytes = 0;
  for await (const block of blocks) {
    const firstEnd = block.indexOf(NEWLINE) + 1;
    const lastEnd = block.lastIndexOf(NEWLINE) + 1;
    if (lastEnd > 0) {
      const isTooLong = partialLineBytes + firstEnd - 1 > MAX_FILE_LINE_BYTES;
      if (isTooLong) yield { rejection: LINE_TOO_LONG };
      const lines = isTooLong
        ? block.subarray(firstEnd, lastEnd)
        : Buffer.concat([...partialLine, block.subarray(0, lastEnd)]);
      if (lines.length > 0) yield { lines };
      partialLine = [];
      partialLineBytes = 0;
    }
    partialLineBytes += block.length - lastEnd;
    if (partialLineBytes > MAX_FILE_LINE_BYTES) partialLine = [];
    else partialLine.push(block.subarray(lastEnd));
  }
  if (partialLineBytes > MAX_FILE_LINE_BYTES) yield { rejection: LINE_TOO_LONG };
  else if (partialLineBytes > 0) yield { lines: Buffer.concat(partialLine) };
}

async function* readJson(bytes: Bytes): AsyncGenerator<LogChunk> {
  const blocks: Buffer[] = [];
  let totalBytes = 0;
  for await (const block of bytes) {
    blocks.push(block);
    totalBytes += block.length;
    if (totalBytes > MAX_JSON_FILE_BYTES)
      throw new OperatorError(
        'a JSON file must not be larger than 256 MiB; convert it to NDJSON, which has no limit (jq -c ".[]")',
      );
  }
  const values = parseJsonBody(Buffer.concat(blocks).toString('utf8'));
  for (let start = 0; start < values.length; start += VALUES_PER_CHUNK)
    yield* toChunks(values.slice(start, start + VALUES_PER_CHUNK));
}

/** Writes parsed values as lines of NDJSON. */
export function* toChunks(values: readonly ParseResult[]): Generator<LogChunk> {
  let lines: string[] = [];
  for (const parsed of values) {
    const result = 'rejection' in parsed ? parsed.rejection : toLine(parsed.value);
    if (typeof result === 'string') lines.push(result);
    else {
      if (lines.length > 0) yield { lines: Buffer.from(lines.join('')) };
      lines = [];
      yield { rejection: result };
    }
  }
  if (lines.length > 0) yield { lines: Buffer.from(lines.join('')) };
}

function toLine(value: unknown): string | Rejection {
  try {
    return `${stringifyExactJson(value)}\n`;
  } catch {
    return TOO_DEEP;
  }
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'permission denied',
  EISDIR: 'it is a directory',
  Z_BUF_ERROR: 'the gzip data is truncated',
  Z_DATA_ERROR: 'the gzip data is corrupt',
};

function describeReadError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  return REASONS[code] ?? error.message.split('\n', 1)[0] ?? '';
}
