// One file of the spool: blocks one after another, written at its end, read from its beginning.
import { type FileHandle, open } from 'node:fs/promises';
import { OperatorError } from '../errors.ts';
import { LINE_FORM } from '../log-line.ts';
import type { LogKind } from '../log-record.ts';
import type { KnownRequest } from './known-requests.ts';
import { type Block, type BlockHead, decodeBlock } from './spool-block.ts';

const READ_BYTES = 8 * 1024 * 1024;
const NEWLINE = 0x0a;

export class Segment {
  readonly number: number;
  readonly path: string;
  readonly #handle: FileHandle;
  /** How far it is durable. */
  bytes = 0;
  /** For each kind in it, the number after its last record. */
  readonly ends = new Map<LogKind, number>();
  readonly requests: KnownRequest[] = [];

  private constructor(number: number, path: string, handle: FileHandle) {
    this.number = number;
    this.path = path;
    this.#handle = handle;
  }

  /** Where a file of that name is there already, it was begun on a disk that failed and never came into use. */
  static async create(number: number, path: string): Promise<Segment> {
    return new Segment(number, path, await open(path, 'w+', 0o600));
  }

  /**
   * Reads an existing one through. `lostBytes` stand behind its last sound block; it is damaged, and not just torn at its
   * end, where there is another sound one among them.
   */
  static async open(
    number: number,
    path: string,
  ): Promise<{ segment: Segment; lostBytes: number; isDamaged: boolean }> {
    const handle = await open(path, 'r+');
    const segment = new Segment(number, path, handle);
    const { size } = await handle.stat();
    while (segment.bytes < size) {
      const { blocks, end } = await segment.read(segment.bytes, READ_BYTES, size);
      if (blocks.some(({ head }) => head.form !== LINE_FORM)) {
        await handle.close();
        throw new OperatorError(
          `${path}: these records were written by another version of dendro; start that one once more, so that it stores them`,
        );
      }
      for (const { head } of blocks) segment.#note(head);
      segment.bytes = end;
      if (blocks.length === 0) break;
    }
    const lostBytes = size - segment.bytes;
    const isDamaged = lostBytes > 0 && holdsBlock(await segment.#readBytes(segment.bytes, lostBytes));
    return { segment, lostBytes, isDamaged };
  }

  /** Writes at the end and flushes to the disk. Where that fails the segment is as it was before. */
  async append(heads: readonly BlockHead[], bytes: Uint8Array): Promise<void> {
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
      await this.cutTail();
      throw error;
    }
    this.bytes += bytes.length;
    for (const head of heads) this.#note(head);
  }

  /** Cuts off what stands behind the last sound block. */
  async cutTail(): Promise<void> {
    await this.#handle.truncate(this.bytes);
    await this.#handle.datasync();
  }

  /** The blocks from an offset on: about `most` bytes of them, at least one, as far as they are whole. */
  async read(from: number, most: number, to = this.bytes): Promise<{ blocks: Block[]; end: number }> {
    for (let length = Math.min(most, to - from); ; ) {
      const bytes = await this.#readBytes(from, length);
      const blocks: Block[] = [];
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

  #note({ kind, first, count, request }: BlockHead): void {
    this.ends.set(kind, first + count);
    if (request !== undefined) this.requests.push(request);
  }
}

function holdsBlock(bytes: Buffer): boolean {
  for (let start = bytes.indexOf(NEWLINE) + 1; start > 0; start = bytes.indexOf(NEWLINE, start) + 1) {
    const block = decodeBlock(bytes, start);
    if (block !== undefined && 'head' in block) return true;
  }
  return false;
}
