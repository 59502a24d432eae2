// One segment file of the spool: a sequence of blocks, appended at the end and read from the start.
import { existsSync, readdirSync, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { OperatorError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION } from '../domain/log-line.ts';
import type { CompletedRequest } from './idempotency-index.ts';
import { trackEnd } from './sequences.ts';
import { decodeBlocks, type SpoolBlock } from './spool-block.ts';

/** Segments are validated in reads of about this size. */
const READ_BYTES = 8 * 1024 * 1024;

/** The file names of the segments in the directory of a spool, the oldest first. Empty if the directory does not exist. */
export function listSegments(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter(name => /^\d+\.spool$/.test(name))
    .sort();
}

export class SpoolSegment {
  readonly number: number;
  readonly path: string;
  /** Unix milliseconds. */
  readonly createdAtMs: number;
  readonly #handle: FileHandle;
  /** Whether a failed append may have left bytes after the valid blocks. */
  #mayHaveInvalid = false;
  /** Length of the blocks that are valid and durable. */
  validBytes = 0;
  /** For each kind in the segment, the sequence number after its last record. */
  readonly endSequences = new Map<LogKind, number>();
  /** For each kind in the segment, the length of its blocks. */
  readonly bytesOfKind = new Map<LogKind, number>();

  private constructor(number: number, path: string, handle: FileHandle, createdAtMs: number) {
    this.number = number;
    this.path = path;
    this.createdAtMs = createdAtMs;
    this.#handle = handle;
  }

  /** A file of this name exists only if an earlier attempt to create it failed. It then has no blocks, and is overwritten. */
  static async create(number: number, path: string): Promise<SpoolSegment> {
    const handle = await open(path, 'w+', 0o600);
    return new SpoolSegment(number, path, handle, creationTimeOf(await handle.stat()));
  }

  /**
   * Opens an existing segment and validates it. `invalidBytes` is the number of bytes from the first invalid block to the
   * end of the file. `requests` are those of the valid blocks.
   */
  static async open(
    number: number,
    path: string,
  ): Promise<{ segment: SpoolSegment; invalidBytes: number; requests: CompletedRequest[] }> {
    const handle = await open(path, 'r+');
    const stats = await handle.stat();
    const { size } = stats;
    const segment = new SpoolSegment(number, path, handle, creationTimeOf(stats));
    const requests: CompletedRequest[] = [];
    while (segment.validBytes < size) {
      const { blocks, end } = await segment.read(segment.validBytes, READ_BYTES, size);
      const incompatible = blocks.find(({ header }) => header.formatVersion !== LINE_FORMAT_VERSION);
      if (incompatible !== undefined) {
        await handle.close();
        throw new OperatorError(
          `${path} was written by another version of dendro (line format ${incompatible.header.formatVersion}, this version reads ${LINE_FORMAT_VERSION}); start that version once so that it stores these records, then start this one`,
        );
      }
      for (const block of blocks) {
        segment.#trackBlock(block);
        if (block.header.request !== undefined) requests.push(block.header.request);
      }
      segment.validBytes = end;
      if (blocks.length === 0) break;
    }
    return { segment, invalidBytes: size - segment.validBytes, requests };
  }

  /**
   * Appends encoded blocks and syncs the file. If that fails, cuts off what it has written, and throws. If it cannot cut that off,
   * the next append does it first.
   */
  async append(
    blocks: readonly Pick<SpoolBlock, 'header' | 'blockBytes'>[],
    encoded: Uint8Array,
  ): Promise<void> {
    if (this.#mayHaveInvalid) await this.truncateInvalid();
    try {
      for (let written = 0; written < encoded.length; ) {
        const { bytesWritten } = await this.#handle.write(
          encoded,
          written,
          encoded.length - written,
          this.validBytes + written,
        );
        written += bytesWritten;
      }
      await this.#handle.datasync();
    } catch (error) {
      this.#mayHaveInvalid = true;
      await this.truncateInvalid().catch(() => {}); // report the first error
      throw error;
    }
    this.validBytes += encoded.length;
    for (const block of blocks) this.#trackBlock(block);
  }

  /** Syncs blocks that an earlier process wrote but did not sync before it was killed. */
  sync(): Promise<void> {
    return this.#handle.datasync();
  }

  /** Truncates the file to `validBytes`. */
  async truncateInvalid(): Promise<void> {
    await this.#handle.truncate(this.validBytes);
    await this.#handle.datasync();
    this.#mayHaveInvalid = false;
  }

  /**
   * Reads complete blocks from an offset: about `maxBytes`, but at least one block if there is one. `end` is the offset
   * after the last of them.
   */
  async read(
    offset: number,
    maxBytes: number,
    segmentEnd = this.validBytes,
  ): Promise<{ blocks: SpoolBlock[]; end: number }> {
    const { blocks, data } = await readBlocks(
      (...range) => this.#readData(...range),
      offset,
      maxBytes,
      segmentEnd,
    );
    return { blocks, end: offset + data.length };
  }

  /** Reads blocks that were valid when the segment was opened or appended to. Throws if they are damaged now. */
  async readValid(offset: number, maxBytes: number): Promise<{ blocks: SpoolBlock[]; end: number }> {
    const read = await this.read(offset, maxBytes);
    if (read.blocks.length === 0)
      throw new Error(
        `the block at offset ${offset} of ${this.path} is damaged; restart dendro, which skips damaged blocks and keeps a copy of them`,
      );
    return read;
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  async #readData(offset: number, length: number): Promise<Buffer> {
    const data = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.#handle.read(data, filled, length - filled, offset + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return data.subarray(0, filled);
  }

  #trackBlock({ header, blockBytes }: Pick<SpoolBlock, 'header' | 'blockBytes'>): void {
    const { kind } = header;
    trackEnd(this.endSequences, header);
    this.bytesOfKind.set(kind, (this.bytesOfKind.get(kind) ?? 0) + blockBytes);
  }
}

/** Some file systems do not store the time of creation; the last change is nearest to it. */
function creationTimeOf({ birthtimeMs, mtimeMs }: Stats): number {
  return birthtimeMs > 0 ? birthtimeMs : mtimeMs;
}

/** Reads complete blocks as `SpoolSegment.read` does. `data` has their bytes. */
export async function readBlocks(
  readAt: (offset: number, length: number) => Promise<Buffer>,
  offset: number,
  maxBytes: number,
  segmentEnd: number,
): Promise<{ blocks: SpoolBlock[]; data: Buffer }> {
  const available = segmentEnd - offset;
  for (let length = Math.min(maxBytes, available); ; ) {
    const data = await readAt(offset, length);
    const { blocks, decodedBytes, missingBytes } = decodeBlocks(data, offset);
    const isFinal = blocks.length > 0 || missingBytes === undefined || length === available;
    if (isFinal) return { blocks, data: data.subarray(0, decodedBytes) };
    length = Math.min(available, Math.max(length * 2, length + missingBytes));
  }
}
