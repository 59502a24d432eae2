// From the bytes of a body to lines for the spool: unpacked, parsed, each record held against the rules, and those that
// are not taken set aside with their reason. Works on its arguments alone, so that it can run in a thread (body-threads.ts).
import { hash } from 'node:crypto';
import type { LogKind } from '../domain/log-columns.ts';
import { toLogLine } from '../domain/log-line.ts';
import { hasIdentity } from '../logs/has-identity.ts';
import { type Parsed, parseJsonBody, parseNdjsonLines } from '../logs/parse.ts';
import { formatQuarantineLine } from '../logs/quarantine-line.ts';
import { isRejection, type RecordRules, toRecord } from '../logs/record.ts';
import type { RejectCode, Rejection } from '../logs/rejection.ts';
import { decompress } from './decompress.ts';
import { holdsTooManyValues, tooManyValues } from './value-count.ts';

export interface BatchBody {
  readonly bytes: Uint8Array;
  /** As Content-Encoding names it; empty for none. */
  readonly contentCoding: string;
  readonly format: 'json' | 'ndjson';
  readonly kind: LogKind;
  readonly rules: RecordRules;
  /** Whether anybody will ask if it was sent before; nobody asks about a file. */
  readonly isRepeatable: boolean;
}

export interface RecordError {
  readonly index: number;
  readonly code: RejectCode;
  readonly message: string;
}

export interface ParsedBody {
  readonly accepted: number;
  /** The accepted records (log-line.ts). */
  readonly lines: Uint8Array;
  readonly rejected: Readonly<Partial<Record<RejectCode, number>>>;
  /** Of the first of those that are rejected. */
  readonly errors: readonly RecordError[];
  /** The rejected records as they came, with their reasons, one a line; of very many the first. */
  readonly quarantine: string;
  /** SHA-256 of the bytes, unpacked; empty for what is not repeatable. */
  readonly digest: string;
  /** There are accepted records and each tells itself apart, so the same bytes are the same records sent again. */
  readonly hasIdentity: boolean;
}

const MAX_ERRORS_LISTED = 20;
/** A body of 16 MiB can hold millions of values, and each with its reason is a hundred times as long. */
const MAX_QUARANTINE_LENGTH = 16 * 1024 * 1024;

/**
 * Records whose lines are put together at a time, as many as a piece of a file usually has: the texts of more would live
 * long, and take many times their bytes.
 */
const LINES_AT_ONCE = 2_000;

/** Throws DendroError where the body is not what it says it is. */
export function parseBody({
  bytes,
  contentCoding,
  format,
  kind,
  rules,
  isRepeatable,
}: BatchBody): ParsedBody {
  const unpacked = decompress(bytes, contentCoding);
  const parts: Buffer[] = [];
  let lines: string[] = [];
  let accepted = 0;
  const rejected: Partial<Record<RejectCode, number>> = {};
  const errors: RecordError[] = [];
  const quarantine: string[] = [];
  let quarantineLength = 0;
  let allHaveIdentity = true;
  const flush = () => {
    parts.push(Buffer.from(lines.join('')));
    lines = [];
  };
  const reject = (parsed: Parsed, rejection: Rejection) => {
    rejected[rejection.code] = (rejected[rejection.code] ?? 0) + 1;
    if (errors.length < MAX_ERRORS_LISTED) errors.push({ index: parsed.index, ...rejection });
    if (quarantineLength >= MAX_QUARANTINE_LENGTH) return;
    const line = formatQuarantineLine(kind, rules.nowMicros, parsed, rejection);
    quarantineLength += line.length;
    quarantine.push(line);
  };

  for (const parsed of parse(unpacked, format)) {
    const record =
      'rejection' in parsed ? parsed.rejection : toRecord(parsed.value, kind, rules, parsed.metadataText);
    if (isRejection(record)) reject(parsed, record);
    else {
      lines.push(toLogLine(record));
      accepted++;
      allHaveIdentity &&= isRepeatable && 'value' in parsed && hasIdentity(parsed.value);
      if (lines.length === LINES_AT_ONCE) flush();
    }
  }
  flush();
  return {
    accepted,
    lines: parts.length === 1 ? (parts[0] ?? Buffer.alloc(0)) : Buffer.concat(parts),
    rejected,
    errors,
    quarantine: quarantine.join(''),
    digest: isRepeatable ? hash('sha256', unpacked) : '',
    hasIdentity: allHaveIdentity && accepted > 0,
  };
}

function parse(unpacked: Uint8Array, form: BatchBody['format']): Iterable<Parsed> {
  const text = Buffer.from(unpacked.buffer, unpacked.byteOffset, unpacked.byteLength)
    .toString('utf8')
    .replace(/^\ufeff/, '');
  if (holdsTooManyValues(text, form)) throw tooManyValues();
  return form === 'json' ? parseJsonBody(text) : parseNdjsonLines(linesOf(text));
}

/** One after another: all at once, millions of empty lines would fill the memory. */
function* linesOf(text: string): Generator<string> {
  let start = 0;
  for (let end = text.indexOf('\n'); end !== -1; end = text.indexOf('\n', start)) {
    yield text.slice(start, end);
    start = end + 1;
  }
  yield text.slice(start);
}
