// The format of the quarantine file: one rejected record per line, with its source, the time of arrival, the reason and a checksum.
// `dendro ingest` reads these lines back. The field names are part of the on-disk format.
import { crc32 } from 'node:zlib';
import type { LogKind } from '../domain/log-columns.ts';
import { formatTimestamp, parseTimestamp } from '../domain/timestamp.ts';
import { stringifyExactJson } from './exact-json.ts';
import { isJsonObject } from './json-object.ts';
import { type ParseResult, parseLine } from './parse.ts';
import { projectOf } from './record.ts';
import { readRecordTimestamp } from './record-timestamp.ts';
import type { Rejection } from './rejection.ts';
import { kindOf } from './source-name.ts';

/** `source` is the log kind or, if the kind is not known, the source name as it was sent. */
export function formatQuarantineLine(
  source: string,
  receivedMicros: number,
  parsed: ParseResult,
  { code, message }: Rejection,
): string {
  const received_at = formatTimestamp(BigInt(receivedMicros));
  const reason = JSON.stringify({ source, code, message, received_at });
  const content = formatContent(parsed);
  return `${START}${reason.slice(0, -1)}${CHECKSUM_KEY}${checksumOf(reason, content)}"},${content}}\n`;
}

const START = '{"quarantine":';
/** A JSON string cannot contain this text, because its quotation marks are escaped. */
const CHECKSUM_KEY = ',"checksum":"';
const CHECKSUM_LENGTH = 8;
/** The keys of the object `quarantine`, without `checksum`. In this file, `reason` is the JSON text of that object. */
const KEYS = new Set(['source', 'code', 'message', 'received_at']);

function checksumOf(reason: string, content: string): string {
  return crc32(content, crc32(reason)).toString(16).padStart(CHECKSUM_LENGTH, '0');
}

/** Whether a line, without its newline, is as it was written. Lines of versions up to 0.2.0 have no checksum. */
export function isIntactLine(line: string): boolean {
  const at = line.indexOf(CHECKSUM_KEY);
  if (at === -1) return isLineWithoutChecksum(line);
  const start = at + CHECKSUM_KEY.length;
  const end = start + CHECKSUM_LENGTH;
  const reason = `${line.slice(START.length, at)}}`;
  // If the text before the key is not JSON, the key belongs to the record of a line without a checksum, or the line is damaged.
  if (!('value' in parseLine(reason, 0))) return isLineWithoutChecksum(line);
  const content = line.slice(end + '"},'.length, -1);
  const checksum = checksumOf(reason, content);
  return line === `${START}${line.slice(START.length, at)}${CHECKSUM_KEY}${checksum}"},${content}}`;
}

/** Whether an older version may have written the line. Rejects unknown keys: one of them may be a damaged `checksum`. */
function isLineWithoutChecksum(line: string): boolean {
  const parsed = parseLine(line, 0);
  if (!('value' in parsed) || !isJsonObject(parsed.value)) return false;
  const { quarantine, record: _, line: __, ...unknown } = parsed.value;
  if (!isJsonObject(quarantine) || Object.keys(unknown).length > 0) return false;
  return Object.keys(quarantine).every(key => KEYS.has(key));
}

function formatContent(parsed: ParseResult): string {
  if ('rejection' in parsed) return `"line":${JSON.stringify(parsed.line ?? '')}`;
  try {
    return `"record":${stringifyExactJson(parsed.value)}`;
  } catch {
    return '"record":null'; // nested too deeply for JSON.stringify; the reason is kept
  }
}

/**
 * Whether a line of the quarantine file has a record of this project and, if `beforeMicros` is given, from before that time. For
 * a record without a valid timestamp, its time of arrival is compared. A record that cannot be read belongs to the project if the
 * line contains the name of the project anywhere, with or without JSON escapes.
 */
export function isLineOfProject(line: string, project: string, beforeMicros?: bigint): boolean {
  const outer = parseLine(line, 0);
  const { parsed } = ('value' in outer ? parseQuarantined(outer.value, 0) : undefined) ?? {};
  const value = parsed !== undefined && 'value' in parsed ? parsed.value : undefined;
  const isOfProject = isJsonObject(value) ? projectOf(value) === project : containsName(line, project);
  if (!isOfProject || beforeMicros === undefined) return isOfProject;
  const receivedAt = /"received_at":"([^"]+)"/.exec(line)?.[1] ?? '';
  const receivedMicros = Number(parseTimestamp(receivedAt) ?? 0n);
  const timestamp = isJsonObject(value) ? value['timestamp'] : undefined;
  const micros = readRecordTimestamp(timestamp, receivedMicros, Number.POSITIVE_INFINITY);
  return (typeof micros === 'number' ? micros : receivedMicros) < Number(beforeMicros);
}

/**
 * Unescapes up to twice: a rejected line that was not JSON is a string inside the quarantine line, so its escapes are escaped
 * again.
 */
function containsName(line: string, name: string): boolean {
  const once = unescapeJson(line);
  return [line, once, unescapeJson(once)].some(text => text.includes(name));
}

function unescapeJson(text: string): string {
  return text.replace(/\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})/g, escaped => JSON.parse(`"${escaped}"`));
}

/**
 * Returns the rejected record and its kind, which is undefined if its source is unknown. Returns undefined if the value does not
 * come from a quarantine line.
 */
export function parseQuarantined(
  value: unknown,
  index: number,
): { kind: LogKind | undefined; source: string; parsed: ParseResult } | undefined {
  if (!isJsonObject(value) || !isJsonObject(value['quarantine'])) return undefined;
  const { source } = value['quarantine'];
  if (typeof source !== 'string') return undefined;
  const { line, record } = value;
  return {
    kind: kindOf(source),
    source,
    parsed: typeof line === 'string' ? parseLine(line, index) : { index, value: record },
  };
}
