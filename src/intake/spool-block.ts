// One acknowledged request as it lies in the spool: a line with a checksum and a JSON head, then the records' lines. The
// checksum covers both, so that what a crash left half-written is known for what it is.
import { crc32 } from 'node:zlib';
import { LOG_KINDS, type LogKind } from '../log-record.ts';
import type { KnownRequest } from './known-requests.ts';

export interface BlockHead {
  /** Of the lines (log-line.ts). */
  readonly form: number;
  readonly kind: LogKind;
  /** The number of the first record among all that were spooled of its kind. */
  readonly first: number;
  readonly count: number;
  /** Of the lines that follow. */
  readonly bytes: number;
  readonly request?: KnownRequest;
}

export interface Block {
  readonly head: BlockHead;
  readonly lines: Uint8Array;
  /** Of the whole block. */
  readonly size: number;
}

const NEWLINE = 0x0a;
const CHECKSUM_LENGTH = 8;

export function encodeBlock(head: BlockHead, lines: Uint8Array): readonly [Uint8Array, Uint8Array] {
  const json = JSON.stringify(head);
  return [Buffer.from(`${checksum(json, lines)} ${json}\n`), lines];
}

/**
 * The block that begins at `start`. `needs` bytes are missing where it goes on past the end; undefined where there is no
 * whole and sound block.
 */
export function decodeBlock(bytes: Buffer, start: number): Block | { readonly needs: number } | undefined {
  const headEnd = bytes.indexOf(NEWLINE, start);
  if (headEnd === -1) return { needs: 1 };
  const json = bytes.toString('utf8', start + CHECKSUM_LENGTH + 1, headEnd);
  const head = parseHead(json);
  if (head === undefined) return undefined;
  const end = headEnd + 1 + head.bytes;
  if (end > bytes.length) return { needs: end - bytes.length };
  const lines = bytes.subarray(headEnd + 1, end);
  if (bytes.toString('latin1', start, start + CHECKSUM_LENGTH) !== checksum(json, lines)) return undefined;
  return { head, lines, size: end - start };
}

function parseHead(json: string): BlockHead | undefined {
  try {
    const head = JSON.parse(json) as BlockHead;
    const isHead = LOG_KINDS.includes(head.kind) && head.first >= 0 && head.count > 0 && head.bytes > 0;
    return isHead ? head : undefined;
  } catch {
    return undefined;
  }
}

function checksum(json: string, lines: Uint8Array): string {
  return crc32(lines, crc32(json)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}
