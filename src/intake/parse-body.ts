// Turns the bytes of a body into log lines for the spool: decompresses, parses and validates each record. Rejected records
// become quarantine lines. A pure function of its arguments, so that it can run in a worker thread (body-parser-pool.ts).
import { hash } from 'node:crypto';
import type { LogKind } from '../domain/log-columns.ts';
import { toLogLine } from '../domain/log-line.ts';
import type { LogRecord } from '../domain/log-record.ts';
import { type ParseResult, parseJsonBody, parseNdjsonLines } from '../logs/parse.ts';
import { formatQuarantineLine } from '../logs/quarantine-line.ts';
import { hasIdentity, isRejection, toRecord, type ValidationContext } from '../logs/record.ts';
import type { RejectCode, Rejection } from '../logs/rejection.ts';
import { type BodyFormat, decodeText, decompress } from './decode-body.ts';

export interface BatchBody {
  readonly bytes: Uint8Array;
  /** The value of Content-Encoding. Empty: none. */
  readonly contentCoding: string;
  readonly format: BodyFormat;
  readonly kind: LogKind;
  readonly rules: ValidationContext;
  /** Whether the sender may retry, so that the digest and the identity of records are needed. False for files. */
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
  readonly rejected: Readonly<Partial<Record<RejectCode, number>>>;
  /** Errors of the first rejected records. */
  readonly errors: readonly RecordError[];
  /** The rejected records as quarantine lines. If there are very many, only the first. */
  readonly quarantine: string;
  /** SHA-256 of the decompressed bytes. Empty if not repeatable. */
  readonly digest: string;
  /** At least one record was accepted and each accepted record has an identity, so equal bytes are a retry. */
  readonly canDeduplicate: boolean;
}

const MAX_ERRORS = 20;
/** A body of 16 MiB can contain millions of values, and each is a hundred times as long with its reason. */
const MAX_QUARANTINE_LENGTH = 16 * 1024 * 1024;
/** Lines per buffer, about as many as a chunk of a file has. More strings at once would live long and use much memory. */
const LINES_PER_BUFFER = 2_000;

/** Throws DendroError if the body does not have the declared encoding or format. */
export function parseBody(body: BatchBody): ParsedBody {
  const { kind, rules, needsDeduplication } = body;
  const bytes = decompress(body.bytes, body.contentCoding);
  const builder = new ParsedBodyBuilder(body);
  for (const parsed of parseText(decodeText(bytes, body.format), body.format)) {
    const record =
      'rejection' in parsed ? parsed.rejection : toRecord(parsed.value, kind, rules, parsed.metadataText);
    if (isRejection(record)) builder.reject(parsed, record);
    else builder.accept(parsed, record);
  }
  return builder.build(needsDeduplication ? hash('sha256', bytes) : '');
}

class ParsedBodyBuilder {
  readonly #body: BatchBody;
  readonly #buffers: Buffer[] = [];
  #lines: string[] = [];
  #accepted = 0;
  readonly #rejected: Partial<Record<RejectCode, number>> = {};
  readonly #errors: RecordError[] = [];
  readonly #quarantine: string[] = [];
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
    this.#rejected[rejection.code] = (this.#rejected[rejection.code] ?? 0) + 1;
    if (this.#errors.length < MAX_ERRORS) this.#errors.push({ index: parsed.index, ...rejection });
    if (this.#quarantineLength >= MAX_QUARANTINE_LENGTH) return;
    const { kind, rules } = this.#body;
    const line = formatQuarantineLine(kind, rules.nowMicros, parsed, rejection);
    this.#quarantineLength += line.length;
    this.#quarantine.push(line);
  }

  build(digest: string): ParsedBody {
    this.#encodeLines();
    const [first = Buffer.alloc(0)] = this.#buffers;
    return {
      accepted: this.#accepted,
      lines: this.#buffers.length === 1 ? first : Buffer.concat(this.#buffers),
      rejected: this.#rejected,
      errors: this.#errors,
      quarantine: this.#quarantine.join(''),
      digest,
      canDeduplicate: this.#allHaveIdentity && this.#accepted > 0,
    };
  }

  #encodeLines(): void {
    this.#buffers.push(Buffer.from(this.#lines.join('')));
    this.#lines = [];
  }
}

function parseText(text: string, format: BodyFormat): Iterable<ParseResult> {
  return format === 'json' ? parseJsonBody(text) : parseNdjsonLines(splitLines(text));
}

/** Yields one line at a time: an array of millions of empty lines would fill the memory. */
function* splitLines(text: string): Generator<string> {
  let start = 0;
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
    yield text.slice(start, end);
    start = end + 1;
  }
  yield text.slice(start);
}
