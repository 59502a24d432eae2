// The answer to a call: its rows, what is to be said about them, and the encodings of them that somebody asked for, each
// made once. A cached answer that is asked for again encodes nothing.
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
  /** Strong: another one for every other body, compressed bodies included. */
  readonly etag: string;
  readonly coding: ContentCoding;
}

export interface EncodingRequest {
  readonly format: ResultFormat;
  readonly coding: ContentCoding;
  /** Without the addresses that stand in the rows. */
  readonly redacted: boolean;
}

export interface ResultNotes {
  /** When the newest record that the answer may hold was written; ISO 8601. */
  readonly dataThrough: string | undefined;
  /** What the answer lacks, and why. */
  readonly clipped: readonly ('row-limit' | 'retention')[];
}

/** Below this, compressing costs more than it saves. */
const MIN_COMPRESSED_BYTES = 1000;

export class EndpointResult {
  readonly notes: ResultNotes;
  readonly result: QueryResult;
  readonly #columns: readonly Column[];
  /** By what placeOf() says. */
  readonly #encodings = new Map<number, EncodedResult | Promise<EncodedResult>>();
  readonly #rowBytes: number;
  readonly #onGrowth: () => void;
  #encodedBytes = 0;

  /** `onGrowth` is called when an encoding was made, and the answer has grown by it. */
  constructor(
    columns: readonly Column[],
    result: QueryResult,
    notes: ResultNotes,
    onGrowth: () => void = () => {},
  ) {
    this.#columns = columns;
    this.result = result;
    this.notes = notes;
    this.#rowBytes = estimateBytes(result);
    this.#onGrowth = onGrowth;
  }

  /** Roughly what it takes in memory. */
  get bytes(): number {
    return this.#rowBytes + this.#encodedBytes;
  }

  /** A promise only while the encoding is being made. */
  encode(asked: EncodingRequest): EncodedResult | Promise<EncodedResult> {
    const place = placeOf(asked);
    const known = this.#encodings.get(place);
    if (known !== undefined) return known;
    const making = this.#make(asked).then(made => {
      this.#encodings.set(place, made);
      this.#encodedBytes += made.body.length;
      this.#onGrowth();
      return made;
    });
    this.#encodings.set(place, making);
    making.catch(() => this.#encodings.delete(place)); // the next caller may have more luck
    return making;
  }

  async #make({ format, coding, redacted }: EncodingRequest): Promise<EncodedResult> {
    if (coding !== 'identity') {
      const plain = await this.encode({ format, coding: 'identity', redacted });
      if (plain.body.length <= MIN_COMPRESSED_BYTES) return plain;
      return withEtag(await COMPRESSORS[coding](plain.body), coding);
    }
    const rows = redacted ? redactRows(this.#columns, this.result.rows) : this.result.rows;
    return withEtag(Buffer.from(encodeRows(this.#columns, rows, format)), coding);
  }
}

/** A number rather than a text: putting one together and looking it up shows in the time of a hit. */
function placeOf({ format, coding, redacted }: EncodingRequest): number {
  return RESULT_FORMATS.indexOf(format) + 10 * CODINGS.indexOf(coding) + (redacted ? 100 : 0);
}

function withEtag(body: Buffer, coding: ContentCoding): EncodedResult {
  const hash = createHash('sha256').update(body).digest('base64url').slice(0, 22);
  return { body, etag: `"${hash}"`, coding };
}

const brotli = promisify(brotliCompress);
const COMPRESSORS = {
  gzip: promisify(gzip) as (body: Buffer) => Promise<Buffer>,
  // Quality 5 of 11: beyond it, time grows much faster than answers shrink.
  br: (body: Buffer) => brotli(body, { params: { [constants.BROTLI_PARAM_QUALITY]: 5 } }),
};

function estimateBytes({ rows }: QueryResult): number {
  let bytes = 0;
  for (const row of rows)
    for (const cell of row) bytes += typeof cell === 'string' ? 32 + cell.length * 2 : 16;
  return bytes;
}
