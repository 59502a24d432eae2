// One acknowledged request as it lies in the spool: a line with a checksum and a JSON head, then the records' lines. The
// checksum covers both, so that what a crash left half-written is known for what it is.
import { crc32 } from 'node:zlib';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import type { CompletedRequest } from './idempotency-index.ts';

export interface SpoolBlockHeader {
  /** Of the lines (log-line.ts). */
  readonly form: number;
  readonly kind: LogKind;
  /** The number of the first record among all that were spooled of its kind. */
  readonly first: number;
  readonly count: number;
  /** Of the lines that follow. */
  readonly bytes: number;
  readonly request?: CompletedRequest;
}

export interface SpoolBlock {
  readonly header: SpoolBlockHeader;
  readonly lines: Uint8Array;
  /** Of the whole block. */
  readonly size: number;
}

const NEWLINE = 0x0a;
const CHECKSUM_LENGTH = 8;

export function encodeBlock(head: SpoolBlockHeader, lines: Uint8Array): readonly [Uint8Array, Uint8Array] {
  const json = JSON.stringify(head);
  return [Buffer.from(`${checksum(json, lines)} ${json}\n`), lines];
}

/**
 * The block that begins at `start`. `needs` bytes are missing where it goes on past the end; undefined where there is no
 * whole and sound block.
 */
export function decodeBlock(
  bytes: Buffer,
  start: number,
): SpoolBlock | { readonly needs: number } | undefined {
  const headerEnd = bytes.indexOf(NEWLINE, start);
  if (headerEnd === -1) return { needs: 1 };
  const json = bytes.toString('utf8', start + CHECKSUM_LENGTH + 1, headerEnd);
  const header = parseHeader(json);
  if (header === undefined) return undefined;
  const end = headerEnd + 1 + header.bytes;
  if (end > bytes.length) return { needs: end - bytes.length };
  const lines = bytes.subarray(headerEnd + 1, end);
  if (bytes.toString('latin1', start, start + CHECKSUM_LENGTH) !== checksum(json, lines)) return undefined;
  return { header, lines, size: end - start };
}

function parseHeader(json: string): SpoolBlockHeader | undefined {
  try {
    const head = JSON.parse(json) as SpoolBlockHeader;
    const isHead = LOG_KINDS.includes(head.kind) && head.first >= 0 && head.count > 0 && head.bytes > 0;
    return isHead ? head : undefined;
  } catch {
    return undefined;
  }
}

function checksum(json: string, lines: Uint8Array): string {
  return crc32(lines, crc32(json)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}
