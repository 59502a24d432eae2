// Parses the text of a body or a line into JSON values with indexes. Does not check what a record must contain (record.ts).
import { DendroError } from '../domain/errors.ts';
import { isJsonObject, type JsonObject } from '../system/parse-json.ts';
import { parseExactJson } from './exact-json.ts';
import type { Rejection } from './rejection.ts';

/** One value of a body or file, or the reason why it does not parse. `index` starts at 0, in the order of the input. */
export type ParseResult =
  /**
   * `originalMetadata` is the text of the metadata as it was sent, if known. `source` is the source name, in a format where each
   * record has its own (OTLP); empty if the record has none.
   */
  | {
      readonly index: number;
      readonly value: unknown;
      readonly originalMetadata?: string;
      readonly source?: string;
    }
  /** `line` is the text as it was sent, if known. */
  | { readonly index: number; readonly rejection: Rejection; readonly line?: string };

/** Parses one JSON object, an array of them or `{"batch":[…]}`. Throws `invalid_body` if the text is not valid JSON. */
export function parseJsonBody(text: string): readonly ParseResult[] {
  return unwrapBatch(parseJsonText(text)).map((value, index) => ({ index, value }));
}

/** Parses the text of a body. Throws `invalid_body` if it is not valid JSON. */
export function parseJsonText(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch (error) {
    throw new DendroError('invalid_body', `invalid JSON: ${describeSyntaxError(error, text)}`, {
      cause: error,
    });
  }
}

export function tooManyValues(): DendroError {
  return new DendroError(
    'payload_too_large',
    'the body contains too many values to parse at once; send smaller batches',
  );
}

/** Parses one JSON value per line. A line that does not parse is one rejected record. Blank lines are skipped. */
export function* parseNdjsonLines(lines: Iterable<string>): Generator<ParseResult> {
  let index = 0;
  for (const line of lines) {
    if (isBlank(line)) continue;
    yield parseLine(line, index++);
  }
}

export function parseLine(line: string, index: number): ParseResult {
  try {
    const split = splitLine(line);
    return split === undefined ? { index, value: parseExactJson(line) } : { index, ...split };
  } catch (error) {
    return {
      index,
      line,
      rejection: {
        code: 'invalid_json',
        message: `The line is not valid JSON: ${describeSyntaxError(error, line)}`,
      },
    };
  }
}

export interface SplitLine {
  readonly value: JsonObject;
  readonly originalMetadata: string;
}

const METADATA_KEY = ',"metadata":';

/**
 * Splits a line before its metadata, so that the original text of the metadata can be stored: stringifying it again took a
 * quarter of the time per record. Returns undefined unless metadata is an object and the last field of the line, as senders
 * usually write it. Both pieces must parse: the line with `null` in place of the metadata, and the metadata by itself. So
 * the result equals that of parsing the whole line.
 */
export function splitLine(line: string): SplitLine | undefined {
  const start = line.indexOf(METADATA_KEY) + METADATA_KEY.length;
  if (start < METADATA_KEY.length || line[start] !== '{' || !line.endsWith('}}')) return undefined;
  const originalMetadata = line.slice(start, -1);
  if (originalMetadata.includes('\r')) return undefined; // JSON allows it as white space, but the store reads it as the end of a line
  try {
    const value = parseExactJson(`${line.slice(0, start)}null}`) as Record<string, unknown>;
    if (value['metadata'] !== null) return undefined;
    value['metadata'] = parseExactJson(originalMetadata);
    return { value, originalMetadata };
  } catch {
    return undefined;
  }
}

function isBlank(line: string): boolean {
  return !/\S/.test(line);
}

/** Whether a value is a batch of records: an array or `{"batch":[…]}`. */
export function isBatch(value: unknown): boolean {
  const [first] = unwrapBatch(value);
  return first !== value; // `unwrapBatch` returns a single record as the only item
}

function unwrapBatch(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  // Senders add their own fields next to `batch`. In an object with a message or metadata, `batch` is a field of a record.
  const isWrapped =
    isJsonObject(value) &&
    Array.isArray(value['batch']) &&
    !['event_message', 'message', 'metadata'].some(field => Object.hasOwn(value, field));
  return isWrapped ? (value['batch'] as readonly unknown[]) : [value];
}

/** Returns the message of JSON.parse as one line. That message quotes only a few characters around the error. */
function describeSyntaxError(error: unknown, text: string): string {
  if (isBlank(text)) return 'the text is empty.';
  if (error instanceof RangeError) return 'the text contains a number that is too long.';
  const message = error instanceof Error ? error.message.replace(/\s+/g, ' ').toWellFormed() : 'syntax error';
  // Newer versions of Node add the line and the column themselves.
  const position = /at position (\d+)$/.exec(message)?.[1];
  return position === undefined ? `${message}.` : `${message} (${lineAndColumn(text, Number(position))}).`;
}

function lineAndColumn(text: string, position: number): string {
  let line = 1;
  let lineStart = 0;
  for (let end = text.indexOf('\n'); end !== -1 && end < position; end = text.indexOf('\n', lineStart)) {
    line++;
    lineStart = end + 1;
  }
  return `line ${line}, column ${position - lineStart + 1}`;
}
