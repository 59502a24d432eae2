// The result of an endpoint: rows, notes about them, and their encodings. Each encoding is created when it is first
// requested and then kept, so that a cache hit does not encode or compress anything.
import { createHash } from 'node:crypto';
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Column, QueryResult } from '../store/store.ts';
import { encodeRows, RESULT_FORMATS, type Row, type RowEncoding } from './encode-rows.ts';
import type { CursorAfter } from './pages.ts';
import { redactRow } from './redact.ts';

export const COMPRESSIONS = ['br', 'gzip'] as const;
const CODINGS = ['identity', ...COMPRESSIONS] as const;
export type ContentCoding = (typeof CODINGS)[number];

export interface EncodedResult {
  readonly body: Buffer;
  /** A strong ETag: each compression of the same rows has its own. */
  readonly etag: string;
  readonly contentCoding: ContentCoding;
  /** Why rows are missing from the body or, with `retention`, may be missing. Rows of later pages do not count as missing. */
  readonly clipped: readonly ClippedReason[];
  /** Where the next page starts; undefined: there are no more rows, or the endpoint has no pages. */
  readonly nextCursor: string | undefined;
}

export interface EncodingRequest extends RowEncoding {
  readonly contentCoding: ContentCoding;
  /** Replaces the IP addresses in the rows, and leaves the id out of the cursor. */
  readonly redacted: boolean;
}

export interface ResultNotes {
  /**
   * ISO 8601 timestamp of the newest record, not later than now, of the log kinds that the request reads. Looked up before the
   * query ran. For a pinned token: of the requested project or, without a parameter `project`, of the token's projects.
   */
  readonly dataThrough: string | undefined;
  /** The same as `EncodedResult.clipped`, for the result. An encoding can be clipped further (`byte-limit`). */
  readonly clipped: readonly ClippedReason[];
  /** Damaged or missing parts of the store whose records the result lacks. */
  readonly missingParts: number;
}

export type ClippedReason = 'row-limit' | 'byte-limit' | 'time-limit' | 'retention';

export interface ResultOptions {
  /** The limit of a body before compression; rows beyond it are cut. */
  readonly maxBytes?: number | undefined;
  /** Undefined: the endpoint has no pages. */
  readonly cursorAfter?: CursorAfter | undefined;
}

/** Compressing a body of up to this size takes more time than it saves. */
const MAX_UNCOMPRESSED_BYTES = 1000;

export class EndpointResult {
  readonly notes: ResultNotes;
  readonly rows: QueryResult['rows'];
  /** How long the query took. */
  readonly timing: Pick<QueryResult, 'queuedMs' | 'executedMs'>;
  readonly #columns: readonly Column[];
  /** The encodings that exist. The key is toEncodingKey(). */
  readonly #encoded = new Map<number, EncodedResult>();
  /** The encodings that exist or are being created. */
  readonly #encodings = new Map<number, Promise<EncodedResult>>();
  /** Estimated size of the rows in memory. */
  readonly rowBytes: number;
  readonly #options: ResultOptions;
  #encodedBytes = 0;

  constructor(
    columns: readonly Column[],
    { rows, queuedMs, executedMs }: QueryResult,
    notes: ResultNotes,
    options: ResultOptions = {},
  ) {
    this.#columns = columns;
    this.rows = rows;
    this.timing = { queuedMs, executedMs };
    this.notes = notes;
    this.rowBytes = estimateBytes(rows);
    this.#options = options;
  }

  /** The cursor after all rows, not redacted; undefined: there are no more rows, or the endpoint has no pages. */
  get nextCursor(): string | undefined {
    return this.#options.cursorAfter?.(this.rows.length, false);
  }

  /** Estimated size in memory. Grows with each new encoding. */
  get bytes(): number {
    return this.rowBytes + this.#encodedBytes;
  }

  /** Returns the encoding if it exists already. */
  findEncoded(request: EncodingRequest): EncodedResult | undefined {
    return this.#encoded.get(toEncodingKey(request));
  }

  /** Creates the encoding, unless it exists or is being created. */
  async encode(request: EncodingRequest): Promise<EncodedResult> {
    const key = toEncodingKey(request);
    const existing = this.#encodings.get(key);
    if (existing !== undefined) return existing;
    const creating = this.#create(request);
    this.#encodings.set(key, creating);
    try {
      const encoded = await creating;
      this.#encoded.set(key, encoded);
      this.#encodedBytes += encoded.body.length;
      return encoded;
    } catch (error) {
      this.#encodings.delete(key); // the next request retries
      throw error;
    }
  }

  async #create(request: EncodingRequest): Promise<EncodedResult> {
    const { contentCoding, redacted } = request;
    if (contentCoding !== 'identity') {
      const plain = await this.encode({ ...request, contentCoding: 'identity' });
      if (plain.body.length <= MAX_UNCOMPRESSED_BYTES) return plain;
      const body = await COMPRESSORS[contentCoding](plain.body);
      return { ...plain, body, etag: await createEtag(body), contentCoding };
    }
    const rows = redacted ? redactLazily(this.#columns, this.rows) : this.rows;
    const { body, rowCount, isCut } = await encodeRows(this.#columns, rows, request, this.#options.maxBytes);
    const clipped = this.#listClipped(isCut);
    const nextCursor = this.#options.cursorAfter?.(rowCount, redacted);
    return { body, etag: await createEtag(body), contentCoding, clipped, nextCursor };
  }

  #listClipped(isCut: boolean): readonly ClippedReason[] {
    const { clipped } = this.notes;
    return isCut && !clipped.includes('byte-limit') ? [...clipped, 'byte-limit'] : clipped;
  }
}

/** Redacts each row when it is encoded: redacting all of them at once would block the event loop. */
function* redactLazily(columns: readonly Column[], rows: Iterable<Row>): Generator<Row> {
  for (const row of rows) yield redactRow(columns, row);
}

/** A number, because building and looking up a string takes a noticeable part of the time of a cache hit. */
function toEncodingKey({ format, contentCoding, redacted, isoTimestamps }: EncodingRequest): number {
  const flags = (redacted ? 100 : 0) + (isoTimestamps ? 200 : 0);
  return RESULT_FORMATS.indexOf(format) + 10 * CODINGS.indexOf(contentCoding) + flags;
}

/** Bytes that are hashed without a pause. */
const HASH_CHUNK_BYTES = 1024 * 1024;

async function createEtag(body: Buffer): Promise<string> {
  const hash = createHash('sha256').update(body.subarray(0, HASH_CHUNK_BYTES));
  for (let start = HASH_CHUNK_BYTES; start < body.length; start += HASH_CHUNK_BYTES) {
    await yieldToEventLoop();
    hash.update(body.subarray(start, start + HASH_CHUNK_BYTES));
  }
  return `"${hash.digest('base64url').slice(0, 22)}"`;
}

const brotli = promisify(brotliCompress);
const COMPRESSORS = {
  gzip: promisify(gzip) as (body: Buffer) => Promise<Buffer>,
  // Quality 5 of 11: above it, the time grows much faster than the size shrinks.
  br: (body: Buffer) => brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
};

function estimateBytes(rows: QueryResult['rows']): number {
  let bytes = 0;
  for (const row of rows)
    for (const cell of row) bytes += typeof cell === 'string' ? 32 + cell.length * 2 : 16;
  return bytes;
}
