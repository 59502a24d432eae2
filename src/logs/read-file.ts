// Reads a log file for `dendro ingest`: NDJSON or JSON, optionally with gzip compression, or Parquet. Detects the format by
// content, never by file name.
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { OperatorError } from '../domain/errors.ts';
import { type LogChunk, readTextChunks, toChunks } from './log-chunks.ts';
import { PeekableBytes } from './peekable-bytes.ts';
import { readParquet } from './read-parquet.ts';

/** About a thousand records: passing a chunk to a worker thread then costs little compared to parsing it. */
const CHUNK_BYTES = 1024 * 1024;

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
 * Reads a file, or standard input for `-`, as chunks of NDJSON. Throws OperatorError if the file cannot be read or
 * has an unknown format. The message is one line that names the file.
 */
export async function* readLogFile(path: string, options: ReadOptions = {}): AsyncGenerator<LogChunk> {
  let input: Readable | undefined;
  try {
    const totalBytes = path === '-' ? undefined : await readSize(path);
    input = path === '-' ? (options.standardInput ?? process.stdin) : openFile(path);
    const report = (bytesRead: number) => options.onProgress?.({ bytesRead, totalBytes });
    const bytes = new PeekableBytes(input as AsyncIterable<Buffer>);
    const head = await bytes.peek(first => first.length >= 4);
    const { onContent } = options;
    if (isParquet(head)) {
      if (totalBytes === undefined) throw new OperatorError(PARQUET_NEEDS_FILE);
      // Reads the whole file for `onContent` only; DuckDB reads it again for the rows. Not reported as progress, because it is
      // fast compared to reading the rows.
      if (onContent !== undefined) for await (const chunk of bytes) onContent(chunk);
      const onProgress = (fraction: number) => report(Math.round(fraction * totalBytes));
      for await (const values of readParquet(path, onProgress)) yield* toChunks(values);
      report(totalBytes); // a file without rows has had no report yet
    } else {
      const counted = countBytes(bytes, report);
      const content = isGzip(head) ? gunzip(counted) : counted;
      const text = new PeekableBytes(toBlocks(withCallback(content, onContent)));
      if (isParquet(await text.peek(first => first.length >= 4))) {
        throw new OperatorError(PARQUET_NEEDS_FILE);
      }
      yield* readTextChunks(text);
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
    const bytes = new PeekableBytes(input as AsyncIterable<Buffer>);
    const head = await bytes.peek(first => first.length >= 4);
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

async function* countBytes(
  bytes: AsyncIterable<Buffer>,
  report: (bytesRead: number) => void,
): AsyncGenerator<Buffer> {
  let bytesRead = 0;
  for await (const chunk of bytes) {
    bytesRead += chunk.length;
    report(bytesRead);
    yield chunk;
  }
}

async function* withCallback(
  bytes: AsyncIterable<Buffer>,
  callback: ((bytes: Buffer) => void) | undefined,
): AsyncGenerator<Buffer> {
  for await (const chunk of bytes) {
    callback?.(chunk);
    yield chunk;
  }
}

/**
 * Regroups bytes into blocks of exactly CHUNK_BYTES, except the last one. The chunks of a file then depend on its content only,
 * not on the way a pipe or a decompressor delivers it, so a repeated load sends the same batches.
 */
async function* toBlocks(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
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

async function* gunzip(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
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
