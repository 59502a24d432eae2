// One segment file of the spool: a sequence of blocks, appended at the end and read from the start.
import { type FileHandle, open } from 'node:fs/promises';
import { OperatorError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION } from '../domain/log-line.ts';
import type { SpooledLines } from '../store/store.ts';
import { readAt } from '../system/open-file.ts';
import type { CompletedRequest } from './completed-request.ts';
import { decodeBlocks, type SpoolBlock } from './spool-block.ts';
import { type SegmentSequences, trackBlock } from './spool-state.ts';

/** Segments are validated in reads of about this size. */
const READ_BYTES = 8 * 1024 * 1024;

export class SpoolSegment implements SegmentSequences {
  readonly number: number;
  readonly path: string;
  readonly #handle: FileHandle;
  /** Whether a failed append may have left bytes after the valid blocks. */
  #mayHaveInvalid = false;
  /** Length of the blocks that are valid and durable. */
  validBytes = 0;
  /** Length of the blocks that the store has applied. All of them count as unapplied when the segment is opened. */
  appliedBytes = 0;
  readonly startSequences = new Map<LogKind, number>();
  readonly endSequences = new Map<LogKind, number>();

  private constructor(number: number, path: string, handle: FileHandle) {
    this.number = number;
    this.path = path;
    this.#handle = handle;
  }

  /** A file of this name exists only if an earlier attempt to create it failed. It then has no blocks, and is overwritten. */
  static async create(number: number, path: string): Promise<SpoolSegment> {
    return new SpoolSegment(number, path, await open(path, 'w+', 0o600));
  }

  /**
   * Opens an existing segment and validates it. `invalidBytes` is the number of bytes from the first invalid block to the
   * end of the file. `requests` are those of the valid blocks.
   */
  static async open(
    number: number,
    path: string,
  ): Promise<{
    segment: SpoolSegment;
    createdAtMs: number;
    invalidBytes: number;
    requests: CompletedRequest[];
  }> {
    const handle = await open(path, 'r+');
    const { size, birthtimeMs, mtimeMs } = await handle.stat();
    const segment = new SpoolSegment(number, path, handle);
    const requests: CompletedRequest[] = [];
    while (segment.validBytes < size) {
      const { blocks, data } = await readBlocks(segment.#readAt, segment.validBytes, READ_BYTES, size);
      if (blocks.length === 0) break;
      for (const { formatVersion, request, ...block } of blocks) {
        if (formatVersion !== LINE_FORMAT_VERSION) {
          await handle.close();
          throw new OperatorError(
            `${path} was written by another version of dendro (line format ${formatVersion}, this version reads ${LINE_FORMAT_VERSION}); start that version once so that it stores these records, then start this one`,
          );
        }
        trackBlock(segment, block);
        if (request !== undefined) requests.push(request);
      }
      segment.validBytes += data.length;
    }
    // Some file systems do not store the time of creation; the last change is nearest to it.
    const createdAtMs = birthtimeMs > 0 ? birthtimeMs : mtimeMs;
    return { segment, createdAtMs, invalidBytes: size - segment.validBytes, requests };
  }

  /**
   * Appends encoded blocks and syncs the file. If that fails, cuts off what it has written, and throws. If it cannot cut that off,
   * the next append does it first.
   */
  async append(blocks: readonly Omit<SpooledLines, 'lines'>[], chunks: readonly Uint8Array[]): Promise<void> {
    await this.cutFailedWrite();
    const bytes = chunks.reduce((sum, { length }) => sum + length, 0);
    try {
      let written = (await this.#handle.writev(chunks, this.validBytes)).bytesWritten;
      if (written < bytes) {
        // A short write, such as on a full disk: another write returns the reason.
        const rest = Buffer.concat(chunks);
        while (written < bytes)
          written += (await this.#handle.write(rest, written, bytes - written, this.validBytes + written))
            .bytesWritten;
      }
      await this.sync();
    } catch (error) {
      this.#mayHaveInvalid = true;
      await this.truncateInvalid().catch(() => {}); // report the first error
      throw error;
    }
    this.validBytes += bytes;
    for (const block of blocks) trackBlock(this, block);
  }

  sync(): Promise<void> {
    return this.#handle.datasync();
  }

  async cutFailedWrite(): Promise<void> {
    if (this.#mayHaveInvalid) await this.truncateInvalid();
  }

  /** Truncates the file to `validBytes`. */
  async truncateInvalid(): Promise<void> {
    await this.#handle.truncate(this.validBytes);
    await this.sync();
    this.#mayHaveInvalid = false;
  }

  /** Reads blocks from the first unapplied one: about `maxBytes`, but at least one block. `bytes` is their length. */
  async readUnapplied(maxBytes: number): Promise<{ blocks: SpoolBlock[]; bytes: number }> {
    const { blocks, data } = await readBlocks(this.#readAt, this.appliedBytes, maxBytes, this.validBytes);
    if (blocks.length === 0) throw new DamagedBlockError(this.path, this.appliedBytes);
    return { blocks, bytes: data.length };
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  readonly #readAt = (offset: number, length: number) => readAt(this.#handle.fd, offset, length);
}

/** Reads complete blocks from an offset: about `maxBytes`, but at least one block if there is one. `data` has their bytes. */
export async function readBlocks(
  read: (offset: number, length: number) => Promise<Buffer>,
  offset: number,
  maxBytes: number,
  segmentEnd: number,
): Promise<{ blocks: SpoolBlock[]; data: Buffer }> {
  const available = segmentEnd - offset;
  for (let length = Math.min(maxBytes, available); ; ) {
    const data = await read(offset, length);
    const { blocks, decodedBytes, missingBytes } = decodeBlocks(data, offset);
    const isFinal = blocks.length > 0 || missingBytes === undefined || length === available;
    if (isFinal) return { blocks, data: data.subarray(0, decodedBytes) };
    length = Math.min(available, Math.max(length * 2, length + missingBytes));
  }
}

/** A block that was valid when the segment was opened or appended to. */
export class DamagedBlockError extends Error {
  constructor(path: string, offset: number) {
    super(`${path} has a damaged block at offset ${offset}`);
  }
}
