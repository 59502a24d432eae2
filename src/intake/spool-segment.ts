// One segment file of the spool, and its format: a sequence of blocks, appended at the end and read from the start. A block
// is one acknowledged request: a line with a checksum and a JSON header, then the log lines. The checksum covers the header
// and the lines, so that a block that a crash left incomplete is detected.
import { type FileHandle, open } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { OperatorError } from '../domain/errors.ts';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION } from '../domain/log-line.ts';
import type { IdempotencyRecord } from './idempotency-index.ts';

/** The field names are part of the on-disk format. */
export interface SpoolBlockHeader {
  /** Version of the line format (log-line.ts). */
  readonly form: number;
  readonly kind: LogKind;
  /** Sequence number of the first record, counted per kind. */
  readonly first: number;
  /** Number of records. */
  readonly count: number;
  /** Length of the log lines. */
  readonly bytes: number;
  readonly request?: IdempotencyRecord;
}

export interface SpoolBlock {
  readonly header: SpoolBlockHeader;
  readonly lines: Uint8Array;
  /** Bytes of the whole block. */
  readonly size: number;
}

const READ_BYTES = 8 * 1024 * 1024;
const NEWLINE = 0x0a;
const CHECKSUM_LENGTH = 8;

export class SpoolSegment {
  readonly number: number;
  readonly path: string;
  readonly #handle: FileHandle;
  /** Length of the durable, valid blocks. */
  bytes = 0;
  /** For each kind in the segment, the sequence number after its last record. */
  readonly endSequences = new Map<LogKind, number>();
  readonly requests: IdempotencyRecord[] = [];

  private constructor(number: number, path: string, handle: FileHandle) {
    this.number = number;
    this.path = path;
    this.#handle = handle;
  }

  /** Overwrites an existing file: the disk failed while that segment was created, so it was never used. */
  static async create(number: number, path: string): Promise<SpoolSegment> {
    return new SpoolSegment(number, path, await open(path, 'w+', 0o600));
  }

  /**
   * Opens an existing segment and validates it. `lostBytes` is the length after the last valid block. `isDamaged` says that
   * another valid block follows among them, so they are more than an incomplete write at the end.
   */
  static async open(
    number: number,
    path: string,
  ): Promise<{ segment: SpoolSegment; lostBytes: number; isDamaged: boolean }> {
    const handle = await open(path, 'r+');
    const segment = new SpoolSegment(number, path, handle);
    const { size } = await handle.stat();
    while (segment.bytes < size) {
      const { blocks, end } = await segment.read(segment.bytes, READ_BYTES, size);
      const other = blocks.find(({ header }) => header.form !== LINE_FORMAT_VERSION);
      if (other !== undefined) {
        await handle.close();
        throw new OperatorError(
          `${path} was written by another version of dendro (line format ${other.header.form ?? 1}, this version reads ${LINE_FORMAT_VERSION}); start that version once so that it stores these records, then start this one`,
        );
      }
      for (const { header } of blocks) segment.#addToIndex(header);
      segment.bytes = end;
      if (blocks.length === 0) break;
    }
    const lostBytes = size - segment.bytes;
    const isDamaged = lostBytes > 0 && containsBlock(await segment.#readBytes(segment.bytes, lostBytes));
    return { segment, lostBytes, isDamaged };
  }

  /** Appends encoded blocks and syncs the file. If that fails, the segment is unchanged. */
  async append(headers: readonly SpoolBlockHeader[], bytes: Uint8Array): Promise<void> {
    try {
      for (let written = 0; written < bytes.length; ) {
        const { bytesWritten } = await this.#handle.write(
          bytes,
          written,
          bytes.length - written,
          this.bytes + written,
        );
        written += bytesWritten;
      }
      await this.#handle.datasync();
    } catch (error) {
      await this.truncateTail();
      throw error;
    }
    this.bytes += bytes.length;
    for (const header of headers) this.#addToIndex(header);
  }

  /** Removes everything after the last valid block. */
  async truncateTail(): Promise<void> {
    await this.#handle.truncate(this.bytes);
    await this.#handle.datasync();
  }

  /** Reads complete blocks from an offset: about `maxBytes`, but at least one block if there is one. */
  async read(
    offset: number,
    maxBytes: number,
    segmentEnd = this.bytes,
  ): Promise<{ blocks: SpoolBlock[]; end: number }> {
    const available = segmentEnd - offset;
    for (let length = Math.min(maxBytes, available); ; ) {
      const { blocks, size, missingBytes } = decodeBlocks(await this.#readBytes(offset, length));
      const isFinal = blocks.length > 0 || missingBytes === undefined || length === available;
      if (isFinal) return { blocks, end: offset + size };
      length = Math.min(available, Math.max(length * 2, length + missingBytes));
    }
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  async #readBytes(offset: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.#handle.read(bytes, filled, length - filled, offset + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  }

  #addToIndex({ kind, first, count, request }: SpoolBlockHeader): void {
    this.endSequences.set(kind, first + count);
    if (request !== undefined) this.requests.push(request);
  }
}

export function encodeBlock(
  header: SpoolBlockHeader,
  lines: Uint8Array,
): readonly [header: Uint8Array, lines: Uint8Array] {
  const json = JSON.stringify(header);
  return [Buffer.from(`${checksum(json, lines)} ${json}\n`), lines];
}

/** Decodes blocks from the start of `bytes`. `missingBytes` is set if the last block continues after the end of `bytes`. */
function decodeBlocks(bytes: Buffer): {
  readonly blocks: SpoolBlock[];
  readonly size: number;
  readonly missingBytes: number | undefined;
} {
  const blocks: SpoolBlock[] = [];
  let size = 0;
  while (size < bytes.length) {
    const block = decodeBlock(bytes, size);
    if (block === undefined) break;
    if ('missingBytes' in block) return { blocks, size, missingBytes: block.missingBytes };
    blocks.push(block);
    size += block.size;
  }
  return { blocks, size, missingBytes: undefined };
}

/** Returns undefined if no valid block starts at `start`. */
function decodeBlock(
  bytes: Buffer,
  start: number,
): SpoolBlock | { readonly missingBytes: number } | undefined {
  const headerEnd = bytes.indexOf(NEWLINE, start);
  if (headerEnd === -1) return { missingBytes: 1 };
  const json = bytes.toString('utf8', start + CHECKSUM_LENGTH + 1, headerEnd);
  const header = parseHeader(json);
  if (header === undefined) return undefined;
  const end = headerEnd + 1 + header.bytes;
  if (end > bytes.length) return { missingBytes: end - bytes.length };
  const lines = bytes.subarray(headerEnd + 1, end);
  if (bytes.toString('latin1', start, start + CHECKSUM_LENGTH) !== checksum(json, lines)) return undefined;
  return { header, lines, size: end - start };
}

function parseHeader(json: string): SpoolBlockHeader | undefined {
  try {
    const header = JSON.parse(json) as SpoolBlockHeader;
    const isValid =
      LOG_KINDS.includes(header.kind) && header.first >= 0 && header.count > 0 && header.bytes > 0;
    return isValid ? header : undefined;
  } catch {
    return undefined;
  }
}

function checksum(json: string, lines: Uint8Array): string {
  return crc32(lines, crc32(json)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}

/** Whether a valid block starts after any newline. */
function containsBlock(bytes: Buffer): boolean {
  for (let start = bytes.indexOf(NEWLINE) + 1; start > 0; start = bytes.indexOf(NEWLINE, start) + 1) {
    const block = decodeBlock(bytes, start);
    if (block !== undefined && 'header' in block) return true;
  }
  return false;
}
