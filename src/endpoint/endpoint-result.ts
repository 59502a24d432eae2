// The result of an endpoint: rows, notes about them, and their encodings. Each encoding is created when it is first
// requested and then kept, so that a cache hit does not encode or compress anything.
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Column, QueryResult } from '../store/store.ts';
import { encodeRows, RESULT_FORMATS, type ResultFormat } from './encode-rows.ts';
import { redactRows } from './redact.ts';

export const COMPRESSIONS = ['br', 'gzip'] as const;
const CODINGS = ['identity', ...COMPRESSIONS] as const;
export type ContentCoding = (typeof CODINGS)[number];

export interface EncodedResult {
  readonly body: Buffer;
  /** A strong ETag: each compression of the same rows has its own. */
  readonly etag: string;
  readonly contentCoding: ContentCoding;
}

export interface EncodingRequest {
  readonly format: ResultFormat;
  readonly contentCoding: ContentCoding;
  /** Replaces the IP addresses in the rows. */
  readonly redacted: boolean;
}

export interface ResultNotes {
  /** Timestamp of the newest record of the log kind when the query ran; ISO 8601. */
  readonly dataThrough: string | undefined;
  /** Why rows are missing from the result; empty if it is complete. */
  readonly clipped: readonly ClippedReason[];
}

export type ClippedReason = 'row-limit' | 'retention';

/** Compressing a smaller body takes more time than it saves. */
const MIN_BYTES_TO_COMPRESS = 1000;

export class EndpointResult {
  readonly notes: ResultNotes;
  readonly rows: QueryResult['rows'];
  /** How long the query took. */
  readonly timing: Pick<QueryResult, 'queuedMs' | 'executedMs'>;
  readonly #columns: readonly Column[];
  /** The key is toEncodingKey(). The value is a promise while the encoding is being created. */
  readonly #encodings = new Map<number, EncodedResult | Promise<EncodedResult>>();
  readonly #rowBytes: number;
  readonly #onSizeChange: () => void;
  #encodedBytes = 0;

  /** Calls `onSizeChange` after each new encoding, because it increases `bytes`. */
  constructor(
    columns: readonly Column[],
    { rows, queuedMs, executedMs }: QueryResult,
    notes: ResultNotes,
    onSizeChange: () => void = () => {},
  ) {
    this.#columns = columns;
    this.rows = rows;
    this.timing = { queuedMs, executedMs };
    this.notes = notes;
    this.#rowBytes = estimateBytes(rows);
    this.#onSizeChange = onSizeChange;
  }

  /** Estimated size in memory. */
  get bytes(): number {
    return this.#rowBytes + this.#encodedBytes;
  }

  /** Returns a promise only until the encoding exists: awaiting takes a noticeable part of the time of a cache hit. */
  encode(request: EncodingRequest): EncodedResult | Promise<EncodedResult> {
    const key = toEncodingKey(request);
    const existing = this.#encodings.get(key);
    if (existing !== undefined) return existing;
    const creating = this.#create(request).then(encoded => {
      this.#encodings.set(key, encoded);
      this.#encodedBytes += encoded.body.length;
      this.#onSizeChange();
      return encoded;
    });
    this.#encodings.set(key, creating);
    creating.catch(() => this.#encodings.delete(key)); // the next request retries
    return creating;
  }

  async #create({ format, contentCoding, redacted }: EncodingRequest): Promise<EncodedResult> {
    if (contentCoding !== 'identity') {
      const plain = await this.encode({ format, contentCoding: 'identity', redacted });
      if (plain.body.length <= MIN_BYTES_TO_COMPRESS) return plain;
      return withEtag(await COMPRESSORS[contentCoding](plain.body), contentCoding);
    }
    const rows = redacted ? redactRows(this.#columns, this.rows) : this.rows;
    return withEtag(Buffer.from(encodeRows(this.#columns, rows, format)), contentCoding);
  }
}

/** A number, because building and looking up a string takes a noticeable part of the time of a cache hit. */
function toEncodingKey({ format, contentCoding, redacted }: EncodingRequest): number {
  return RESULT_FORMATS.indexOf(format) + 10 * CODINGS.indexOf(contentCoding) + (redacted ? 100 : 0);
}

function withEtag(body: Buffer, contentCoding: ContentCoding): EncodedResult {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { body, etag: `"${hash}"`, contentCoding };
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
