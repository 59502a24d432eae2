// Turns a request body into log lines for the spool: decompresses and parses the body, then validates each record. Rejected
// records become quarantine lines. Depends on its arguments only, so it can run in a worker thread (body-parser-pool.ts).
import { hash } from 'node:crypto';
import { DendroError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { toLogLine } from '../domain/log-line.ts';
import type { LogRecord } from '../domain/log-record.ts';
import { type ParseResult, parseJsonBody, parseNdjsonLines } from '../logs/parse.ts';
import { formatQuarantineLine } from '../logs/quarantine-line.ts';
import { hasIdentity, isRejection, toRecord, type ValidationContext } from '../logs/record.ts';
import { createIdSequence } from '../logs/record-id.ts';
import type { RejectCode, Rejection } from '../logs/rejection.ts';
import { type BodyFormat, decodeText, decompress } from './decode-body.ts';

export interface BatchBody {
  /** As received, possibly compressed. */
  readonly data: Uint8Array;
  /** The value of Content-Encoding. Empty: the body is not compressed. */
  readonly contentCoding: string;
  readonly format: BodyFormat;
  readonly kind: LogKind;
  readonly context: Omit<ValidationContext, 'createId'>;
  /** Whether the sender may retry. If so, `digest` and `canDeduplicate` of the result are needed. False for files. */
  readonly needsDeduplication: boolean;
}

export interface RecordError {
  readonly index: number;
  readonly code: RejectCode;
  readonly message: string;
}

export interface ParsedBody {
  readonly accepted: number;
  /** The accepted records as log lines (log-line.ts). */
  readonly lines: Uint8Array;
  /** Number of rejected records by code. */
  readonly rejectedByCode: Readonly<Partial<Record<RejectCode, number>>>;
  /** Errors of the first rejected records. */
  readonly errors: readonly RecordError[];
  /** The rejected records as quarantine lines, up to MAX_QUARANTINE_LENGTH. */
  readonly quarantineLines: string;
  /** SHA-256 of the decompressed body. Empty unless `needsDeduplication`. */
  readonly digest: string;
  /** At least one record was accepted, and each accepted record has an identity. An equal body is then a repeat. */
  readonly canDeduplicate: boolean;
}

const MAX_ERRORS = 20;
/** A body can contain millions of tiny invalid values. Its quarantine lines would be a hundred times as long as the body. */
const MAX_QUARANTINE_LENGTH = 16 * 1024 * 1024;
/** Lines are encoded in groups of this size, because keeping the strings of a whole body would use much memory. */
const LINES_PER_BUFFER = 2_000;

/**
 * Throws DendroError if the body does not have the declared encoding or format, or when `isCancelled` returns true. That is
 * checked after decompression, after decoding, and before each record.
 */
export function parseBody(body: BatchBody, isCancelled: () => boolean = () => false): ParsedBody {
  const stopIfCancelled = () => {
    if (isCancelled()) throw new DendroError('unavailable', 'the client disconnected');
  };
  const { kind, needsDeduplication } = body;
  const context = { ...body.context, createId: createIdSequence(body.context.nowMicros) };
  const decompressed = decompress(body.data, body.contentCoding);
  stopIfCancelled();
  const text = decodeText(decompressed, body.format);
  stopIfCancelled();
  const builder = new ParsedBodyBuilder(body);
  for (const parsed of parseText(text, body.format)) {
    stopIfCancelled();
    const result =
      'rejection' in parsed
        ? parsed.rejection
        : toRecord(parsed.value, kind, context, parsed.originalMetadata);
    if (isRejection(result)) builder.reject(parsed, result);
    else builder.accept(parsed, result);
  }
  return builder.build(needsDeduplication ? hash('sha256', decompressed) : '');
}

class ParsedBodyBuilder {
  readonly #body: BatchBody;
  readonly #encodedLines: Buffer[] = [];
  /** Lines that are not encoded yet. */
  #lines: string[] = [];
  #accepted = 0;
  readonly #rejectedByCode: Partial<Record<RejectCode, number>> = {};
  readonly #errors: RecordError[] = [];
  readonly #quarantineLines: string[] = [];
  #quarantineLength = 0;
  #allHaveIdentity = true;

  constructor(body: BatchBody) {
    this.#body = body;
  }

  accept(parsed: ParseResult, record: LogRecord): void {
    this.#lines.push(toLogLine(record));
    this.#accepted++;
    this.#allHaveIdentity &&= this.#body.needsDeduplication && 'value' in parsed && hasIdentity(parsed.value);
    if (this.#lines.length === LINES_PER_BUFFER) this.#encodeLines();
  }

  reject(parsed: ParseResult, rejection: Rejection): void {
    this.#rejectedByCode[rejection.code] = (this.#rejectedByCode[rejection.code] ?? 0) + 1;
    if (this.#errors.length < MAX_ERRORS) this.#errors.push({ index: parsed.index, ...rejection });
    if (this.#quarantineLength >= MAX_QUARANTINE_LENGTH) return;
    const { kind, context } = this.#body;
    const line = formatQuarantineLine(kind, context.nowMicros, parsed, rejection);
    this.#quarantineLength += line.length;
    this.#quarantineLines.push(line);
  }

  build(digest: string): ParsedBody {
    this.#encodeLines();
    const [first = Buffer.alloc(0)] = this.#encodedLines;
    return {
      accepted: this.#accepted,
      lines: this.#encodedLines.length === 1 ? first : Buffer.concat(this.#encodedLines),
      rejectedByCode: this.#rejectedByCode,
      errors: this.#errors,
      quarantineLines: this.#quarantineLines.join(''),
      digest,
      canDeduplicate: this.#allHaveIdentity && this.#accepted > 0,
    };
  }

  #encodeLines(): void {
    this.#encodedLines.push(Buffer.from(this.#lines.join('')));
    this.#lines = [];
  }
}

function parseText(text: string, format: BodyFormat): Iterable<ParseResult> {
  return format === 'json' ? parseJsonBody(text) : parseNdjsonLines(splitLines(text));
}

/** Yields one line at a time, because an array of millions of empty lines would use too much memory. */
function* splitLines(text: string): Generator<string> {
  let start = 0;
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
    yield text.slice(start, end);
    start = end + 1;
  }
  yield text.slice(start);
}
