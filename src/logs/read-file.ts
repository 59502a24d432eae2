// Reads a file of logs for `dendro ingest`: NDJSON, JSON or Parquet, told apart by what is in it, never by its name.
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { pipeline, Readable } from 'node:stream';
import { createGunzip } from 'node:zlib';
import { OperatorError } from '../domain/errors.ts';
import { type LogChunk, toChunks } from './log-piece.ts';
import { PeekableBytes } from './peekable-bytes.ts';
import { readParquet } from './read-parquet.ts';
import { readText } from './read-text.ts';

/** About a thousand records: large enough that handing it to a thread costs nothing beside reading it. */
const CHUNK_BYTES = 1024 * 1024;

export interface ReadProgress {
  /** Of the file as it lies on disk, compressed or not. */
  readonly readBytes: number;
  /** Undefined for standard input and pipes. */
  readonly totalBytes: number | undefined;
}

export interface ReadOptions {
  readonly onProgress?: (progress: ReadProgress) => void;
  /** What `-` stands for; process.stdin unless given. */
  readonly standardInput?: Readable;
}

/**
 * A file, or standard input for `-`, in pieces that fit in memory, each of them NDJSON. Throws OperatorError, one line that
 * names the file, where it cannot be read or has none of the forms.
 */
export async function* readLogFile(path: string, options: ReadOptions = {}): AsyncGenerator<LogChunk> {
  let input: Readable | undefined;
  try {
    const totalBytes = path === '-' ? undefined : await sizeOf(path);
    input = path === '-' ? (options.standardInput ?? process.stdin) : openFile(path);
    const report = (readBytes: number) => options.onProgress?.({ readBytes, totalBytes });
    const bytes = new PeekableBytes(countBytes(input, report));
    const head = await bytes.peek(beginning => beginning.length >= 4);
    if (isParquet(head)) {
      if (totalBytes === undefined) throw new OperatorError(PARQUET_NEEDS_A_FILE);
      const onShare = (share: number) => report(Math.round(share * totalBytes));
      for await (const values of readParquet(path, onShare)) yield* toChunks(values);
    } else {
      const text = isGzip(head) ? new PeekableBytes(gunzip(bytes)) : bytes;
      if (isParquet(await text.peek(beginning => beginning.length >= 4))) {
        throw new OperatorError(PARQUET_NEEDS_A_FILE);
      }
      yield* readText(text);
    }
  } catch (error) {
    throw new OperatorError(`${path === '-' ? 'standard input' : path}: ${reasonOf(error)}`, {
      cause: error,
    });
  } finally {
    input?.destroy();
  }
}

const PARQUET_NEEDS_A_FILE =
  'it is Parquet, which is read from its end: it has to be a file on disk, not compressed with gzip';

function isGzip(head: Buffer): boolean {
  return head[0] === 0x1f && head[1] === 0x8b;
}

function isParquet(head: Buffer): boolean {
  return head.toString('latin1', 0, 4) === 'PAR1';
}

/** Undefined for what is no ordinary file, such as a named pipe. */
async function sizeOf(path: string): Promise<number | undefined> {
  const file = await stat(path);
  return file.isFile() ? file.size : undefined;
}

function openFile(path: string): Readable {
  return createReadStream(path, { highWaterMark: CHUNK_BYTES });
}

async function* countBytes(input: Readable, report: (readBytes: number) => void): AsyncGenerator<Buffer> {
  let readBytes = 0;
  for await (const chunk of input as AsyncIterable<Buffer>) {
    readBytes += chunk.length;
    report(readBytes);
    yield chunk;
  }
}

function gunzip(bytes: AsyncIterable<Buffer>): AsyncIterable<Buffer> {
  const unpacked = createGunzip({ chunkSize: CHUNK_BYTES });
  // An error of either side destroys `unpacked` with it, and so reaches whoever reads from there.
  pipeline(Readable.from(bytes), unpacked, () => {});
  return unpacked;
}

const REASONS: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such file',
  EACCES: 'the permission to read it is missing',
  EISDIR: 'it is a directory',
  Z_BUF_ERROR: 'the gzip file ends too early',
  Z_DATA_ERROR: 'the gzip file is damaged',
};

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = 'code' in error ? String(error.code) : '';
  return REASONS[code] ?? error.message.split('\n', 1)[0] ?? '';
}
