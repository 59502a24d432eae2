// Turns a request body into log lines for the spool: decompresses and parses the body, then validates each record. Rejected
// records become quarantine lines. Depends on its arguments only, so it can run in a worker thread (body-parser-pool.ts).
import { hash } from 'node:crypto';
import { DendroError } from '../domain/errors.ts';
import { MAX_REPORTED_ERRORS } from '../domain/limits.ts';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { toLogLine } from '../domain/log-line.ts';
import type { LogRecord } from '../domain/log-record.ts';
import { decodeOtlpJson } from '../logs/otlp-json.ts';
import { decodeOtlpProtobuf } from '../logs/otlp-protobuf.ts';
import { toIntakeRecords } from '../logs/otlp-record.ts';
import { type ParseResult, parseJsonBody, parseNdjsonLines } from '../logs/parse.ts';
import { formatQuarantineLine } from '../logs/quarantine-line.ts';
import {
  createIdSequence,
  hasIdentity,
  hasServerError,
  isRejection,
  projectOf,
  toRecord,
  type ValidationContext,
} from '../logs/record.ts';
import type { RejectCode, Rejection } from '../logs/rejection.ts';
import { type OtlpKindRules, readSource, type Source } from '../logs/source-name.ts';
import { isJsonObject } from '../system/parse-json.ts';
import { type BodyFormat, decodeText, decompress } from './decode-body.ts';

/** The body of a request, or a part of a file. It can have records of several kinds. */
export interface EncodedBody {
  /** As received, possibly compressed. */
  readonly data: Uint8Array;
  /** The value of Content-Encoding. Empty: the body is not compressed. */
  readonly contentCoding: string;
  readonly format: BodyFormat;
  /** The kind of all records; for OTLP, the rules for the kind of each record. */
  readonly kind: LogKind | OtlpKindRules;
  readonly context: Omit<ValidationContext, 'createId'>;
  /** Whether the sender may retry. If so, `digest` and `allHaveIdentity` of the result are needed. False for files. */
  readonly needsDeduplication: boolean;
  /** Whether `byProject` of the result is needed. */
  readonly countsProjects?: boolean;
}

export interface RequestCount {
  readonly requests: number;
  /** Of these, with a status of 500 or higher. */
  readonly errors: number;
}

export type ProjectCounts = ReadonlyMap<string, RequestCount>;

export interface RecordError {
  readonly index: number;
  readonly code: RejectCode;
  readonly message: string;
}

export interface ParsedBody {
  /**
   * One for each kind in the body, in the order of LOG_KINDS. Only the last one can be without a kind. If `EncodedBody.kind` is
   * a log kind, there is exactly one batch, even if the body has no records.
   */
  readonly batches: readonly ParsedBatch[];
  /** SHA-256 of the decompressed body. Empty unless `needsDeduplication`. */
  readonly digest: string;
  /**
   * Whether all accepted records have an identity (`hasIdentity` in logs/record.ts). If so, a later request with an equal body
   * is a repeat. If not, it is a repeat only if the response to the first request was not delivered. Not used if the request
   * has an Idempotency-Key, or without `needsDeduplication`.
   */
  readonly allHaveIdentity: boolean;
}

/** The records of one kind. */
export interface ParsedBatch {
  /** Undefined: the source of these records is unknown, and all of them are rejected. */
  readonly kind: LogKind | undefined;
  readonly accepted: number;
  /** The accepted records as log lines (log-line.ts). */
  readonly lines: Uint8Array;
  /** Number of rejected records by code. */
  readonly rejectedByCode: Readonly<Partial<Record<RejectCode, number>>>;
  /** See `selectErrors`. */
  readonly errors: readonly RecordError[];
  /**
   * The rejected records as quarantine lines. When the lines of all batches together reach MAX_QUARANTINE_LENGTH, further records
   * get none. The last line can exceed the limit.
   */
  readonly quarantineLines: string;
  /** The requests to the API or to functions by project. Undefined without `countsProjects`, and for other kinds. */
  readonly byProject?: ProjectCounts | undefined;
}

/**
 * Selects the errors that are reported, in the order of the body: the first of each message, so that each unknown source is named,
 * then repeats.
 */
export function selectErrors(errors: readonly RecordError[]): RecordError[] {
  const inOrder = [...errors].sort((a, b) => a.index - b.index);
  const messages = new Set<string>();
  const [firsts, repeats]: [RecordError[], RecordError[]] = [[], []];
  for (const error of inOrder) {
    (messages.has(error.message) ? repeats : firsts).push(error);
    messages.add(error.message);
  }
  return [...firsts, ...repeats].slice(0, MAX_REPORTED_ERRORS).sort((a, b) => a.index - b.index);
}

/**
 * In characters. Without a limit, the quarantine lines of a body with millions of tiny invalid values would be a hundred times as
 * long as the body.
 */
const MAX_QUARANTINE_LENGTH = 16 * 1024 * 1024;
/**
 * In characters. A quarantine line that would be longer has `null` in place of the record. The limit is higher than that of a
 * body, because escapes make the line longer than the record in the body.
 */
const MAX_QUARANTINE_LINE_LENGTH = 24 * 1024 * 1024;
/**
 * The limit for all log lines of a body together. A JSON body hardly ever exceeds it: only with almost a million tiny records. An
 * OTLP body can: each of its records gets a copy of the attributes of its resource, and a control character, which is one byte in
 * protobuf, becomes an escape of up to six bytes in a log line.
 */
const MAX_LINES_BYTES = 80 * 1024 * 1024;
/** In characters. Lines are encoded in groups of about this length: keeping the strings of a whole body would use much memory. */
const LINES_LENGTH_PER_BUFFER = 2 * 1024 * 1024;

/** Throws DendroError if the body does not have the declared encoding or format, or if it exceeds a limit. */
export function parseBody(body: EncodedBody): ParsedBody {
  const decompressed = decompress(body.data, body.contentCoding);
  const builder = new ParsedBodyBuilder(body);
  for (const parsed of parseContent(decompressed, body)) builder.add(parsed);
  return builder.build(body.needsDeduplication ? hash('sha256', decompressed) : '');
}

function parseContent(data: Uint8Array, { format, kind }: EncodedBody): Iterable<ParseResult> {
  if (typeof kind !== 'string') {
    const isJson = format === 'otlp-json';
    return toIntakeRecords(
      isJson ? decodeOtlpJson(decodeText(data, 'json')) : decodeOtlpProtobuf(data),
      kind,
    );
  }
  return format === 'json'
    ? parseJsonBody(decodeText(data, format))
    : parseNdjsonLines(splitLines(decodeText(data, 'ndjson')));
}

/** A batch while its records are validated. */
interface UnfinishedBatch {
  readonly kind: LogKind | undefined;
  accepted: number;
  readonly encodedLines: Buffer[];
  /** Lines that are not encoded yet. */
  lines: string[];
  linesLength: number;
  readonly rejectedByCode: Partial<Record<RejectCode, number>>;
  /** The first errors, and the first of each of `messages`. */
  readonly errors: RecordError[];
  readonly messages: Set<string>;
  readonly quarantineLines: string[];
  readonly byProject: Map<string, RequestCount> | undefined;
}

/** Validates the records of a body and groups them by kind. */
class ParsedBodyBuilder {
  readonly #body: EncodedBody;
  readonly #context: ValidationContext;
  readonly #batches = new Map<LogKind | undefined, UnfinishedBatch>();
  #allHaveIdentity = true;
  #linesBytes = 0;
  #quarantineLength = 0;

  constructor(body: EncodedBody) {
    this.#body = body;
    const { projects, nowMicros } = body.context;
    // Services that send OTLP often cannot name a project; a token for one project says which it is.
    const defaultProject = typeof body.kind !== 'string' && projects?.length === 1 ? projects[0] : undefined;
    this.#context = { ...body.context, defaultProject, createId: createIdSequence(nowMicros) };
    if (typeof body.kind === 'string') this.#batchOf(body.kind);
  }

  add(parsed: ParseResult): void {
    const { kind } = this.#body;
    const source = typeof kind === 'string' ? { kind } : readSource(sourceNameOf(parsed), kind.allowedKinds);
    const batch = this.#batchOf(source.kind);
    const result = this.#validate(parsed, source);
    if (isRejection(result)) this.#reject(batch, parsed, result);
    else this.#accept(batch, parsed, result);
  }

  build(digest: string): ParsedBody {
    for (const batch of this.#batches.values()) this.#encodeLines(batch);
    const batches = [...LOG_KINDS, undefined].flatMap(kind => {
      const batch = this.#batches.get(kind);
      if (batch === undefined) return [];
      const { accepted, encodedLines, rejectedByCode, errors } = batch;
      const [first = Buffer.alloc(0)] = encodedLines;
      const lines = encodedLines.length === 1 ? first : Buffer.concat(encodedLines);
      return {
        kind,
        accepted,
        lines,
        rejectedByCode,
        errors: selectErrors(errors),
        quarantineLines: batch.quarantineLines.join(''),
        ...(batch.byProject && { byProject: batch.byProject }),
      };
    });
    return { batches, digest, allHaveIdentity: this.#allHaveIdentity };
  }

  #validate(parsed: ParseResult, source: Source): LogRecord | Rejection {
    if ('rejection' in parsed) return parsed.rejection;
    if ('rejection' in source) return source.rejection;
    return toRecord(parsed.value, source.kind, this.#context, parsed.originalMetadata);
  }

  #accept(batch: UnfinishedBatch, parsed: ParseResult, record: LogRecord): void {
    const line = toLogLine(record);
    batch.accepted++;
    if (batch.byProject !== undefined && 'value' in parsed)
      this.#count(batch.byProject, record.project, hasServerError(parsed.value));
    batch.lines.push(line);
    batch.linesLength += line.length;
    if (batch.linesLength >= LINES_LENGTH_PER_BUFFER) this.#encodeLines(batch);
    this.#allHaveIdentity &&= this.#body.needsDeduplication && 'value' in parsed && hasIdentity(parsed.value);
  }

  #count(counts: Map<string, RequestCount>, project: string, isError: boolean): void {
    const { requests, errors } = counts.get(project) ?? { requests: 0, errors: 0 };
    counts.set(project, { requests: requests + 1, errors: errors + (isError ? 1 : 0) });
  }

  #encodeLines(batch: UnfinishedBatch): void {
    const encoded = Buffer.from(batch.lines.join(''));
    batch.encodedLines.push(encoded);
    batch.lines = [];
    batch.linesLength = 0;
    this.#linesBytes += encoded.length;
    if (this.#linesBytes > MAX_LINES_BYTES) throw linesTooLong();
  }

  #reject(batch: UnfinishedBatch, parsed: ParseResult, rejection: Rejection): void {
    batch.rejectedByCode[rejection.code] = (batch.rejectedByCode[rejection.code] ?? 0) + 1;
    const { errors, messages } = batch;
    const isNew = messages.size < MAX_REPORTED_ERRORS && !messages.has(rejection.message);
    if (isNew) messages.add(rejection.message);
    if (isNew || errors.length < MAX_REPORTED_ERRORS) errors.push({ index: parsed.index, ...rejection });
    if (this.#quarantineLength >= MAX_QUARANTINE_LENGTH) return;
    const source = batch.kind ?? sourceNameOf(parsed);
    const { nowMicros } = this.#context;
    let line = formatQuarantineLine(source, nowMicros, this.#withProject(parsed), rejection);
    if (line.length > MAX_QUARANTINE_LINE_LENGTH)
      line = formatQuarantineLine(source, nowMicros, { index: parsed.index, value: null }, rejection);
    this.#quarantineLength += line.length;
    batch.quarantineLines.push(line);
  }

  /** With the default project if it has none: the line can then be erased with its project, and loaded again. */
  #withProject(parsed: ParseResult): ParseResult {
    const { defaultProject: project } = this.#context;
    if (project === undefined || !('value' in parsed) || !isJsonObject(parsed.value)) return parsed;
    return projectOf(parsed.value) === undefined
      ? { ...parsed, value: { ...parsed.value, project } }
      : parsed;
  }

  #batchOf(kind: LogKind | undefined): UnfinishedBatch {
    let batch = this.#batches.get(kind);
    if (batch === undefined) {
      const nothing = { accepted: 0, encodedLines: [], lines: [], linesLength: 0 };
      const isCounted = this.#body.countsProjects && (kind === 'edge' || kind === 'function_edge');
      const byProject = isCounted ? new Map() : undefined;
      batch = {
        kind,
        ...nothing,
        rejectedByCode: {},
        errors: [],
        messages: new Set(),
        quarantineLines: [],
        byProject,
      };
      this.#batches.set(kind, batch);
    }
    return batch;
  }
}

function sourceNameOf(parsed: ParseResult): string {
  return ('source' in parsed ? parsed.source : undefined) ?? '';
}

function linesTooLong(): DendroError {
  return new DendroError(
    'payload_too_large',
    'the records of the body, each with the attributes of its resource, are larger than 80 MiB; send smaller batches',
  );
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
