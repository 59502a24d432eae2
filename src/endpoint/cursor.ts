// The cursor of a paged endpoint: where the next page starts. A cursor belongs to one query: it contains a checksum of its
// position, of the endpoint and of all parameters but the cursor. It is not signed, because it grants nothing: a query applies
// its conditions on every page.
import { createHash } from 'node:crypto';
import { redactText } from './redact.ts';

/**
 * The next page starts with the records of this timestamp whose id is `id` or later, without the first `skip` of them. Older
 * records follow.
 */
export interface Position {
  readonly timestampMicros: bigint;
  /**
   * Usually the id of the last returned record, cut to 256 bytes. `positionAfter` says when it is the id of an earlier position.
   * Empty if the id contains an IP address and must be redacted, or if the next page starts at the boundary of a slice
   * (query-slices.ts). `skip` then counts from the first record of the timestamp.
   */
  readonly id: string;
  /** How many records with this timestamp and with `id` or a later id were already returned. */
  readonly skip: number;
}

export interface Cursor extends Position {
  /** The size of the first slice that the next page searches (query-slices.ts). */
  readonly sliceSeconds: number;
}

/** Ids have no other limit than the size of a record, and a cursor is sent in a header and in a URL. */
const MAX_ID_BYTES = 256;

const CHECKSUM_BYTES = 8;
const TIMESTAMP_BYTES = 8;
const SKIP_BYTES = 4;
const SLICE_BYTES = 4;
const SKIP_OFFSET = CHECKSUM_BYTES + TIMESTAMP_BYTES;
const SLICE_OFFSET = SKIP_OFFSET + SKIP_BYTES;
const ID_OFFSET = SLICE_OFFSET + SLICE_BYTES;

/** `query` is a text that identifies the query. */
export function encodeCursor({ timestampMicros, id, skip, sliceSeconds }: Cursor, query: string): string {
  const idBytes = Buffer.from(id);
  const bytes = Buffer.alloc(ID_OFFSET + idBytes.length);
  bytes.writeBigInt64BE(timestampMicros, CHECKSUM_BYTES);
  bytes.writeUInt32BE(skip, SKIP_OFFSET);
  bytes.writeUInt32BE(sliceSeconds, SLICE_OFFSET);
  idBytes.copy(bytes, ID_OFFSET);
  checksumOf(bytes, query).copy(bytes);
  return bytes.toString('base64url');
}

/** Returns undefined if the text is not a cursor of this query. */
export function decodeCursor(text: string, query: string): Cursor | undefined {
  const bytes = Buffer.from(text, 'base64url');
  // Decoding ignores characters that are not base64url, so the text is compared with its only valid form.
  if (bytes.length < ID_OFFSET || bytes.toString('base64url') !== text) return undefined;
  if (!checksumOf(bytes, query).equals(bytes.subarray(0, CHECKSUM_BYTES))) return undefined;
  return {
    timestampMicros: bytes.readBigInt64BE(CHECKSUM_BYTES),
    id: bytes.toString('utf8', ID_OFFSET),
    skip: bytes.readUInt32BE(SKIP_OFFSET),
    sliceSeconds: bytes.readUInt32BE(SLICE_OFFSET),
  };
}

function checksumOf(bytes: Buffer, query: string): Buffer {
  return createHash('sha256')
    .update(query)
    .update('\0')
    .update(bytes.subarray(CHECKSUM_BYTES))
    .digest()
    .subarray(0, CHECKSUM_BYTES);
}

/** The key of a row, by which the rows are ordered: newest first, then by id. */
export interface RowKey {
  readonly timestampMicros: bigint;
  readonly id: string;
}

/**
 * The position after `rows`, the first rows of a page or all of them. `start` is where the page starts; undefined: at the newest
 * record. With `redacted`, the position has no id that contains an IP address: it counts all records of the timestamp instead.
 */
export function positionAfter(
  rows: readonly RowKey[],
  start: Position | undefined,
  redacted: boolean,
): Position | undefined {
  const last = rows.at(-1);
  if (last === undefined) return start;
  const { timestampMicros } = last;
  const id = redacted && redactText(last.id) !== last.id ? '' : truncateId(last.id);
  const lastUncounted = rows.findLastIndex(
    row => row.timestampMicros !== timestampMicros || !row.id.startsWith(id),
  );
  const skip = rows.length - 1 - lastUncounted;
  // If all rows of the page have this timestamp and an id that starts with `id`, and the page started within this timestamp,
  // earlier pages may have returned such records too. So the new position keeps the id of `start` and adds to its count.
  if (lastUncounted === -1 && start?.timestampMicros === timestampMicros)
    return { timestampMicros, id: start.id, skip: start.skip + skip };
  return { timestampMicros, id, skip };
}

/** Cuts an id to at most MAX_ID_BYTES, between two characters. */
function truncateId(id: string): string {
  const bytes = Buffer.from(id);
  if (bytes.length <= MAX_ID_BYTES) return id;
  let end = MAX_ID_BYTES;
  while (((bytes[end] ?? 0) & 0xc0) === 0x80) end--;
  return bytes.toString('utf8', 0, end);
}
