// One file of the spool: blocks one after another, written at its end, read from its beginning.
import { type FileHandle, open } from 'node:fs/promises';
import { OperatorError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION } from '../domain/log-line.ts';
import type { CompletedRequest } from './idempotency-index.ts';
import { decodeBlock, type SpoolBlock, type SpoolBlockHeader } from './spool-block.ts';

const READ_BYTES = 8 * 1024 * 1024;
const NEWLINE = 0x0a;

export class SpoolSegment {
  readonly number: number;
  readonly path: string;
  readonly #handle: FileHandle;
  /** How far it is durable. */
  bytes = 0;
  /** For each kind in it, the number after its last record. */
  readonly ends = new Map<LogKind, number>();
  readonly requests: CompletedRequest[] = [];

  private constructor(number: number, path: string, handle: FileHandle) {
    this.number = number;
    this.path = path;
    this.#handle = handle;
  }

  /** Where a file of that name is there already, it was begun on a disk that failed and never came into use. */
  static async create(number: number, path: string): Promise<SpoolSegment> {
    return new SpoolSegment(number, path, await open(path, 'w+', 0o600));
  }

  /**
   * Reads an existing one through. `lostBytes` stand behind its last sound block; it is damaged, and not just torn at its
   * end, where there is another sound one among them.
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
      if (blocks.some(({ header }) => header.form !== LINE_FORMAT_VERSION)) {
        await handle.close();
        throw new OperatorError(
          `${path}: these records were written by another version of dendro; start that one once more, so that it stores them`,
        );
      }
      for (const { header } of blocks) segment.#note(header);
      segment.bytes = end;
      if (blocks.length === 0) break;
    }
    const lostBytes = size - segment.bytes;
    const isDamaged = lostBytes > 0 && holdsBlock(await segment.#readBytes(segment.bytes, lostBytes));
    return { segment, lostBytes, isDamaged };
  }

  /** Writes at the end and flushes to the disk. Where that fails the segment is as it was before. */
  async append(heads: readonly SpoolBlockHeader[], bytes: Uint8Array): Promise<void> {
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
    for (const head of heads) this.#note(head);
  }

  /** Cuts off what stands behind the last sound block. */
  async truncateTail(): Promise<void> {
    await this.#handle.truncate(this.bytes);
    await this.#handle.datasync();
  }

  /** The blocks from an offset on: about `most` bytes of them, at least one, as far as they are whole. */
  async read(from: number, most: number, to = this.bytes): Promise<{ blocks: SpoolBlock[]; end: number }> {
    for (let length = Math.min(most, to - from); ; ) {
      const bytes = await this.#readBytes(from, length);
      const blocks: SpoolBlock[] = [];
      let at = 0;
      let needs = 0;
      while (at < bytes.length && needs === 0) {
        const block = decodeBlock(bytes, at);
        if (block === undefined) return { blocks, end: from + at };
        if ('needs' in block) needs = block.needs;
        else {
          blocks.push(block);
          at += block.size;
        }
      }
      if (blocks.length > 0 || length === to - from) return { blocks, end: from + at };
      length = Math.min(to - from, Math.max(length * 2, length + needs));
    }
  }

  close(): Promise<void> {
    return this.#handle.close();
  }

  async #readBytes(from: number, length: number): Promise<Buffer> {
    const bytes = Buffer.allocUnsafe(length);
    let filled = 0;
    while (filled < length) {
      const { bytesRead } = await this.#handle.read(bytes, filled, length - filled, from + filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  }

  #note({ kind, first, count, request }: SpoolBlockHeader): void {
    this.ends.set(kind, first + count);
    if (request !== undefined) this.requests.push(request);
  }
}

function holdsBlock(bytes: Buffer): boolean {
  for (let start = bytes.indexOf(NEWLINE) + 1; start > 0; start = bytes.indexOf(NEWLINE, start) + 1) {
    const block = decodeBlock(bytes, start);
    if (block !== undefined && 'header' in block) return true;
  }
  return false;
}
