// From the text of a body or a line to the values in it, each with its index. What a record must be is for record.ts.
import { DendroError } from '../domain/errors.ts';
import { parseExactJson } from './exact-json.ts';
import { isJsonObject } from './json-object.ts';
import type { Rejection } from './rejection.ts';
import { splitLine } from './split-line.ts';

/** One value of a body or file, or why there is none. `index` counts from 0, in the order of the input. */
export type Parsed =
  /** `metadataText` is the text of its metadata as it was sent, where that is known. */
  | { readonly index: number; readonly value: unknown; readonly metadataText?: string }
  /** `line` is what came, where that is text that could be kept. */
  | { readonly index: number; readonly rejection: Rejection; readonly line?: string };

/** Reads one JSON object, an array of them or `{"batch":[…]}`. Throws `invalid_body` if the text is not JSON. */
export function parseJsonBody(text: string): readonly Parsed[] {
  try {
    return valuesOf(parseExactJson(text)).map((value, index) => ({ index, value }));
  } catch (error) {
    throw new DendroError('invalid_body', `This is not JSON: ${faultOf(error, text)}`, { cause: error });
  }
}

/** Reads one JSON value a line. A line that does not parse is one rejected record; a blank line is nothing. */
export function* parseNdjsonLines(lines: Iterable<string>): Generator<Parsed> {
  let index = 0;
  for (const line of lines) {
    if (isBlank(line)) continue;
    yield parseLine(line, index++);
  }
}

export function parseLine(line: string, index: number): Parsed {
  try {
    const split = splitLine(line);
    return split === undefined ? { index, value: parseExactJson(line) } : { index, ...split };
  } catch (error) {
    return {
      index,
      line,
      rejection: { code: 'invalid_json', message: `The line is not JSON: ${faultOf(error, line)}` },
    };
  }
}

export function isBlank(line: string): boolean {
  return !/\S/.test(line);
}

/** Whether a value holds records rather than being one. */
export function isBatch(value: unknown): boolean {
  return valuesOf(value)[0] !== value;
}

function valuesOf(value: unknown): readonly unknown[] {
  if (Array.isArray(value)) return value;
  // Shippers add fields of their own beside the batch; beside a message or metadata, `batch` is a record's own field.
  const isWrapped =
    isJsonObject(value) &&
    Array.isArray(value['batch']) &&
    !['event_message', 'message', 'metadata'].some(field => Object.hasOwn(value, field));
  return isWrapped ? (value['batch'] as readonly unknown[]) : [value];
}

/** The parser's own words, in one line. It quotes a few characters around the fault and no more. */
function faultOf(error: unknown, text: string): string {
  if (isBlank(text)) return 'it is empty.';
  if (error instanceof RangeError) return 'it holds a number that is too long to be read.';
  const words =
    error instanceof Error ? error.message.replace(/\s+/g, ' ').toWellFormed() : 'it does not parse';
  const position = /at position (\d+)(?! \(line)/.exec(words)?.[1];
  return position === undefined ? `${words}.` : `${words} (${lineAndColumn(text, Number(position))}).`;
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
