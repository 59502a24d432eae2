// Parses the text of a body or a line into values with indexes. record.ts checks what a record must contain.
import { DendroError } from '../domain/errors.ts';
import { parseExactJson } from './exact-json.ts';
import { isJsonObject, type JsonObject } from './json-object.ts';
import type { Rejection } from './rejection.ts';

/** One value of a body or file, or the reason why it does not parse. `index` starts at 0, in the order of the input. */
export type ParseResult =
  /** `metadataText` is the original text of the metadata, if known. */
  | { readonly index: number; readonly value: unknown; readonly metadataText?: string }
  /** `line` is the original text, if it can be kept. */
  | { readonly index: number; readonly rejection: Rejection; readonly line?: string };

/** Parses one JSON object, an array of them or `{"batch":[…]}`. Throws `invalid_body` if the text is not valid JSON. */
export function parseJsonBody(text: string): readonly ParseResult[] {
  try {
    return unwrapBatch(parseExactJson(text)).map((value, index) => ({ index, value }));
  } catch (error) {
    throw new DendroError('invalid_body', `invalid JSON: ${describeSyntaxError(error, text)}`, {
      cause: error,
    });
  }
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
  readonly metadataText: string;
}

const METADATA = ',"metadata":';

/**
 * Splits a line before its metadata, so that the original text of the metadata can be stored: stringifying it took a
 * quarter of the time per record. Returns undefined unless metadata is an object and the last field of the line, as senders
 * usually write it. The rest must parse with `null` in place of the metadata, and the metadata must parse by itself, so the
 * result equals that of parsing the whole line.
 */
export function splitLine(line: string): SplitLine | undefined {
  const start = line.indexOf(METADATA) + METADATA.length;
  if (start < METADATA.length || line[start] !== '{' || !line.endsWith('}}')) return undefined;
  const metadataText = line.slice(start, -1);
  if (metadataText.includes('\r')) return undefined; // white space in JSON, but the end of a line to the store
  try {
    const value = parseExactJson(`${line.slice(0, start)}null}`) as Record<string, unknown>;
    if (value['metadata'] !== null) return undefined;
    value['metadata'] = parseExactJson(metadataText);
    return { value, metadataText };
  } catch {
    return undefined;
  }
}

export function isBlank(line: string): boolean {
  return !/\S/.test(line);
}

/** Whether a value is a batch of records: an array or `{"batch":[…]}`. */
export function isBatch(value: unknown): boolean {
  return unwrapBatch(value)[0] !== value;
}

function unwrapBatch(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  // Shippers add their own fields next to `batch`. Next to a message or metadata, `batch` is a field of one record.
  const isWrapped =
    isJsonObject(value) &&
    Array.isArray(value['batch']) &&
    !['event_message', 'message', 'metadata'].some(field => Object.hasOwn(value, field));
  return isWrapped ? (value['batch'] as readonly unknown[]) : [value];
}

/** The message of JSON.parse on one line. It quotes only a few characters around the error. */
function describeSyntaxError(error: unknown, text: string): string {
  if (isBlank(text)) return 'the text is empty.';
  if (error instanceof RangeError) return 'the text contains a number that is too long.';
  const message = error instanceof Error ? error.message.replace(/\s+/g, ' ').toWellFormed() : 'syntax error';
  const position = /at position (\d+)(?! \(line)/.exec(message)?.[1];
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
