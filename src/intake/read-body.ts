// From the bytes of a body to lines for the spool: unpacked, parsed, each record held against the rules, and those that
// are not taken set aside with their reason. Works on its arguments alone, so that it can run in a thread (body-threads.ts).
import { hash } from 'node:crypto';
import { toLogLine } from '../log-line.ts';
import type { LogKind } from '../log-record.ts';
import { type Parsed, parseJsonBody, parseNdjsonLines } from '../logs/parse.ts';
import { quarantineLine } from '../logs/quarantine-line.ts';
import { type Door, isRejection, toRecord } from '../logs/record.ts';
import type { RejectCode, Rejection } from '../logs/rejection.ts';
import { isStamped } from '../logs/stamped.ts';
import { decompress } from './decompress.ts';

export interface Body {
  readonly bytes: Uint8Array;
  /** As Content-Encoding names it; empty for none. */
  readonly coding: string;
  readonly form: 'json' | 'ndjson';
  readonly kind: LogKind;
  readonly door: Door;
  /** Whether anybody will ask if it was sent before; nobody asks about a file. */
  readonly isRepeatable: boolean;
}

export interface RecordError {
  readonly index: number;
  readonly code: RejectCode;
  readonly message: string;
}

export interface ReadBody {
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
  readonly stamped: boolean;
}

const MAX_ERRORS_LISTED = 20;
/** A body of 16 MiB can hold millions of values, and each with its reason is a hundred times as long. */
const MAX_QUARANTINE_LENGTH = 16 * 1024 * 1024;

/** Throws DendroError where the body is not what it says it is. */
export function readBody({ bytes, coding, form, kind, door, isRepeatable }: Body): ReadBody {
  const unpacked = decompress(bytes, coding);
  const text = Buffer.from(unpacked.buffer, unpacked.byteOffset, unpacked.byteLength)
    .toString('utf8')
    .replace(/^\ufeff/, '');
  const lines: string[] = [];
  const rejected: Partial<Record<RejectCode, number>> = {};
  const errors: RecordError[] = [];
  const quarantine: string[] = [];
  let quarantineLength = 0;
  let stamped = true;
  const reject = (parsed: Parsed, rejection: Rejection) => {
    rejected[rejection.code] = (rejected[rejection.code] ?? 0) + 1;
    if (errors.length < MAX_ERRORS_LISTED) errors.push({ index: parsed.index, ...rejection });
    if (quarantineLength >= MAX_QUARANTINE_LENGTH) return;
    const line = quarantineLine(kind, door.nowMicros, parsed, rejection);
    quarantineLength += line.length;
    quarantine.push(line);
  };

  for (const parsed of form === 'json' ? parseJsonBody(text) : parseNdjsonLines(text.split('\n'))) {
    const record =
      'rejection' in parsed ? parsed.rejection : toRecord(parsed.value, kind, door, parsed.metadataText);
    if (isRejection(record)) reject(parsed, record);
    else {
      lines.push(toLogLine(record));
      stamped &&= isRepeatable && 'value' in parsed && isStamped(parsed.value);
    }
  }
  return {
    accepted: lines.length,
    lines: Buffer.from(lines.join('')),
    rejected,
    errors,
    quarantine: quarantine.join(''),
    digest: isRepeatable ? hash('sha256', unpacked) : '',
    stamped: stamped && lines.length > 0,
  };
}
