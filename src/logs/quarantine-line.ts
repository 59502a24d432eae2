// The format of the quarantine file: one rejected record per line, with its source, the time of arrival and the reason. `dendro
// ingest` reads these lines back. The field names are part of the on-disk format.
import type { LogKind } from '../domain/log-columns.ts';
import { formatTimestamp, parseTimestamp } from '../domain/timestamp.ts';
import { isJsonObject } from '../system/parse-json.ts';
import { stringifyExactJson } from './exact-json.ts';
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
  return `{"quarantine":${reason},${formatRecord(parsed)}}\n`;
}

function formatRecord(parsed: ParseResult): string {
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
  const record = isJsonObject(value) ? value : {};
  const micros = readRecordTimestamp(record, receivedMicros, Number.POSITIVE_INFINITY);
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
