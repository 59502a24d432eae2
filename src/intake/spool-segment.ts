// One segment file of the spool: a sequence of blocks, appended at the end and read from the start. A block is one request:
// a line with a checksum and a JSON header, then the log lines. The checksum covers the header and the lines, so it detects
// a block that a crash left incomplete.
import { type FileHandle, open } from 'node:fs/promises';
import { crc32 } from 'node:zlib';
import { OperatorError } from '../domain/errors.ts';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION } from '../domain/log-line.ts';
import type { CompletedRequest } from './idempotency-index.ts';
import { type DiskRequest, requestFromDisk, requestToDisk } from './idempotency-log.ts';

export interface SpoolBlockHeader {
  /** Version of the line format (log-line.ts). */
  readonly formatVersion: number;
  readonly kind: LogKind;
  /** Sequence number of the first record, counted per kind. */
  readonly firstSequence: number;
  /** Number of records. */
  readonly count: number;
  /** Length of the log lines. */
  readonly lineBytes: number;
  /** Undefined if retries of the request cannot be recognized. */
  readonly request: CompletedRequest | undefined;
}

/** The JSON of a block header. The names are part of the on-disk format. */
interface DiskHeader {
  /** Missing in version 1. */
  readonly form?: number;
  readonly kind: LogKind;
  readonly first: number;
  readonly count: number;
  readonly bytes: number;
  readonly request?: DiskRequest;
}

export interface SpoolBlock {
  readonly header: SpoolBlockHeader;
  readonly lines: Uint8Array;
  /** Where the block starts in its segment. */
  readonly offset: number;
  /** Length of the whole block. */
  readonly blockBytes: number;
}

/** Segments are validated in reads of about this size. */
const READ_BYTES = 8 * 1024 * 1024;
const NEWLINE = 0x0a;
const CHECKSUM_LENGTH = 8;

export class SpoolSegment {
  readonly number: number;
  readonly path: string;
  readonly #handle: FileHandle;
  /** Length of the blocks that are valid and durable. */
  validBytes = 0;
  /** For each kind in the segment, the sequence number after its last record. */
  readonly endSequences = new Map<LogKind, number>();
  /** For each kind in the segment, the length of its blocks. */
  readonly bytesOfKind = new Map<LogKind, number>();

  private constructor(number: number, path: string, handle: FileHandle) {
    this.number = number;
    this.path = path;
    this.#handle = handle;
  }

  /** A file of this name exists only if an earlier create() failed before the first append, so overwriting it is safe. */
  static async create(number: number, path: string): Promise<SpoolSegment> {
    return new SpoolSegment(number, path, await open(path, 'w+', 0o600));
  }

  /**
   * Opens an existing segment and validates it. `invalidBytes` is the number of bytes from the first invalid block to the
   * end of the file. `isDamaged` means that a valid block follows among them: the file is corrupt, not merely cut off by a
   * crash.
   */
  static async open(
    number: number,
    path: string,
    onRequest: (request: CompletedRequest) => void,
  ): Promise<{ segment: SpoolSegment; invalidBytes: number; isDamaged: boolean }> {
    const handle = await open(path, 'r+');
    const segment = new SpoolSegment(number, path, handle);
    const { size } = await handle.stat();
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
        if (block.header.request !== undefined) onRequest(block.header.request);
      }
      segment.validBytes = end;
      if (blocks.length === 0) break;
    }
    const invalidBytes = size - segment.validBytes;
    const isDamaged =
      invalidBytes > 0 && containsBlock(await segment.#readData(segment.validBytes, invalidBytes));
    return { segment, invalidBytes, isDamaged };
  }

  /** Appends encoded blocks and syncs the file. If that fails, the segment is unchanged. */
  async append(
    blocks: readonly Pick<SpoolBlock, 'header' | 'blockBytes'>[],
    encoded: Uint8Array,
  ): Promise<void> {
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
      await this.truncateInvalid();
      throw error;
    }
    this.validBytes += encoded.length;
    for (const block of blocks) this.#trackBlock(block);
  }

  /** Cuts the file from the first invalid block on. */
  async truncateInvalid(): Promise<void> {
    await this.#handle.truncate(this.validBytes);
    await this.#handle.datasync();
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
    const available = segmentEnd - offset;
    for (let length = Math.min(maxBytes, available); ; ) {
      const data = await this.#readData(offset, length);
      const { blocks, decodedBytes, missingBytes } = decodeBlocks(data, offset);
      const isFinal = blocks.length > 0 || missingBytes === undefined || length === available;
      if (isFinal) return { blocks, end: offset + decodedBytes };
      length = Math.min(available, Math.max(length * 2, length + missingBytes));
    }
  }

  /** Reads blocks that were sound before. Throws if they are not any more. */
  async readSound(offset: number, maxBytes: number): Promise<{ blocks: SpoolBlock[]; end: number }> {
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
    const { kind, firstSequence, count } = header;
    this.endSequences.set(kind, Math.max(this.endSequences.get(kind) ?? 0, firstSequence + count));
    this.bytesOfKind.set(kind, (this.bytesOfKind.get(kind) ?? 0) + blockBytes);
  }
}

export function encodeBlock(
  header: SpoolBlockHeader,
  lines: Uint8Array,
): readonly [header: Uint8Array, lines: Uint8Array] {
  const json = stringifyHeader(header);
  return [Buffer.from(`${checksum(json, lines)} ${json}\n`), lines];
}

/**
 * Decodes blocks from the start of `data`, which starts at `dataOffset` of the segment. `missingBytes` is set if the last block
 * continues after the end of `data`.
 */
function decodeBlocks(
  data: Buffer,
  dataOffset: number,
): {
  readonly blocks: SpoolBlock[];
  /** Length of these blocks. */
  readonly decodedBytes: number;
  readonly missingBytes: number | undefined;
} {
  const blocks: SpoolBlock[] = [];
  let decodedBytes = 0;
  while (decodedBytes < data.length) {
    const block = decodeBlock(data, decodedBytes);
    if (block === undefined) break;
    if ('missingBytes' in block) return { blocks, decodedBytes, missingBytes: block.missingBytes };
    blocks.push({ ...block, offset: dataOffset + decodedBytes });
    decodedBytes += block.blockBytes;
  }
  return { blocks, decodedBytes, missingBytes: undefined };
}

/** Returns undefined if no valid block starts at `start`. `missingBytes`: the block continues after the end of `data`. */
function decodeBlock(
  data: Buffer,
  start: number,
): Omit<SpoolBlock, 'offset'> | { readonly missingBytes: number } | undefined {
  const headerEnd = data.indexOf(NEWLINE, start);
  if (headerEnd === -1) return { missingBytes: 1 };
  const json = data.toString('utf8', start + CHECKSUM_LENGTH + 1, headerEnd);
  const header = parseHeader(json);
  if (header === undefined) return undefined;
  const end = headerEnd + 1 + header.lineBytes;
  if (end > data.length) return { missingBytes: end - data.length };
  const lines = data.subarray(headerEnd + 1, end);
  if (data.toString('latin1', start, start + CHECKSUM_LENGTH) !== checksum(json, lines)) return undefined;
  return { header, lines, blockBytes: end - start };
}

function stringifyHeader(header: SpoolBlockHeader): string {
  const { formatVersion, kind, firstSequence, count, lineBytes, request } = header;
  const diskHeader: DiskHeader = {
    form: formatVersion,
    kind,
    first: firstSequence,
    count,
    bytes: lineBytes,
    ...(request === undefined ? {} : { request: requestToDisk(request) }),
  };
  return JSON.stringify(diskHeader);
}

function parseHeader(json: string): SpoolBlockHeader | undefined {
  try {
    const { form = 1, kind, first, count, bytes, request } = JSON.parse(json) as DiskHeader;
    if (!LOG_KINDS.includes(kind) || !(first >= 0 && count > 0 && bytes > 0)) return undefined;
    return {
      formatVersion: form,
      kind,
      firstSequence: first,
      count,
      lineBytes: bytes,
      request: requestFromDisk(request),
    };
  } catch {
    return undefined;
  }
}

function checksum(json: string, lines: Uint8Array): string {
  return crc32(lines, crc32(json)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}

/** Whether a valid block starts after any newline. */
function containsBlock(data: Buffer): boolean {
  for (let start = data.indexOf(NEWLINE) + 1; start > 0; start = data.indexOf(NEWLINE, start) + 1) {
    const block = decodeBlock(data, start);
    if (block !== undefined && 'header' in block) return true;
  }
  return false;
}
