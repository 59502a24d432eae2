// The format of a block of the spool, which has the records of one kind from one request: a line with a checksum and a JSON header,
// then the log lines. The checksum covers the header and the lines, so it detects a block that a crash left incomplete and a block
// that was damaged.
import { crc32 } from 'node:zlib';
import { isLogKind, type LogKind } from '../domain/log-columns.ts';
import { LINE_FORMAT_VERSION, type LogLines } from '../domain/log-line.ts';
import type { SpooledLines } from '../store/store.ts';
import {
  type CompletedRequest,
  type DiskRequest,
  requestFromDisk,
  requestToDisk,
} from './completed-request.ts';

/** Records of one kind and one request. */
export interface SpoolAppend extends LogLines {
  /** Undefined in some blocks of versions up to 0.2.0, and in tests: retries of these requests are not recognized. */
  readonly request?: CompletedRequest | undefined;
}

export interface SpoolBlock extends SpoolAppend, SpooledLines {
  /** Version of the line format (log-line.ts). */
  readonly formatVersion: number;
  /** Where the block starts in its segment. */
  readonly offset: number;
  /** Length of the whole block. */
  readonly blockBytes: number;
}

/** The JSON of a block header. The names are part of the on-disk format. */
interface DiskHeader {
  /** Missing in version 1. */
  readonly form?: number;
  readonly kind: LogKind;
  /** Sequence number of the first record, counted per kind. */
  readonly first: number;
  readonly count: number;
  /** Length of the log lines. */
  readonly bytes: number;
  readonly request?: DiskRequest;
}

const NEWLINE = 0x0a;
const CHECKSUM_LENGTH = 8;
/**
 * The start of a header after the checksum. A header of version 1 has no `form`, so `findBlock` does not find blocks of that
 * version. A log line can contain this text, but not a whole header with a matching checksum, which `decodeBlock` checks.
 */
const HEADER_START = ' {"form":';

export function encodeBlock(
  { kind, count, lines, request }: SpoolAppend,
  firstSequence: number,
): Uint8Array[] {
  const header: DiskHeader = {
    form: LINE_FORMAT_VERSION,
    kind,
    first: firstSequence,
    count,
    bytes: lines.length,
    ...(request === undefined ? {} : { request: requestToDisk(request) }),
  };
  const json = JSON.stringify(header);
  return [Buffer.from(`${checksum(json, lines)} ${json}\n`), lines];
}

/**
 * Decodes blocks from the start of `data`, which starts at `dataOffset` of the segment. `missingBytes` is set if the last block
 * continues after the end of `data`: at least this many bytes of it are missing.
 */
export function decodeBlocks(
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
  const end = headerEnd + 1 + header.bytes;
  if (end > data.length) return { missingBytes: end - data.length };
  const lines = data.subarray(headerEnd + 1, end);
  if (data.toString('latin1', start, start + CHECKSUM_LENGTH) !== checksum(json, lines)) return undefined;
  const { form: formatVersion = 1, kind, first: firstSequence, count } = header;
  const request = requestFromDisk(header.request);
  return { formatVersion, kind, firstSequence, count, lines, request, blockBytes: end - start };
}

function parseHeader(json: string): DiskHeader | undefined {
  try {
    const header = JSON.parse(json) as DiskHeader;
    const isValid = isLogKind(header.kind) && header.first >= 0 && header.count > 0 && header.bytes > 0;
    return isValid ? header : undefined;
  } catch {
    return undefined;
  }
}

function checksum(json: string, lines: Uint8Array): string {
  return crc32(lines, crc32(json)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}

/** The offset of the next valid block at or after `start`. Undefined if there is none. */
export function findBlock(data: Buffer, start: number): number | undefined {
  let at = data.indexOf(HEADER_START, start);
  while (at !== -1) {
    const lineEnd = data.indexOf(NEWLINE, at);
    if (lineEnd === -1) return undefined;
    // A header has HEADER_START only once, because JSON escapes quotes. So only the last one of a line can be that of a header.
    const blockStart = data.lastIndexOf(HEADER_START, lineEnd) - CHECKSUM_LENGTH;
    const block = blockStart < start ? undefined : decodeBlock(data, blockStart);
    if (block !== undefined && 'kind' in block) return blockStart;
    at = data.indexOf(HEADER_START, lineEnd);
  }
  return undefined;
}

/** Matches a header that a crash cut off before its newline. Other text without a newline may be the rest of a damaged block. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: a header contains no control character
const UNFINISHED_HEADER = /^(?:[0-9a-f]{1,8}|[0-9a-f]{8} (?:\{[^\0-\x1f]*)?)$/;

/**
 * Whether it is certain that a crash interrupted the write of these last bytes of the spool: the file ends before the block does.
 * A block of full length may have been acknowledged, even if parts of it are zero.
 */
export function isTornWrite(tail: Buffer): boolean {
  const headerEnd = tail.indexOf(NEWLINE);
  if (headerEnd === -1) return UNFINISHED_HEADER.test(tail.toString('latin1'));
  const header = parseHeader(tail.toString('utf8', CHECKSUM_LENGTH + 1, headerEnd));
  if (header === undefined) return false;
  const lines = tail.subarray(headerEnd + 1);
  // If all lines are there although the header claims more bytes, the write was not torn: the length in the header is damaged.
  return lines.length < header.bytes && lines.toString('latin1').split('\n').length - 1 < header.count;
}
