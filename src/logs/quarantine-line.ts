// The format of the quarantine file: one rejected record per line, with its source, the time of arrival and the reason.
// `dendro ingest` reads these lines back. The field names are part of the on-disk format.
import type { LogKind } from '../domain/log-columns.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import { stringifyExactJson } from './exact-json.ts';
import { isJsonObject } from './json-object.ts';
import { type ParseResult, parseLine } from './parse.ts';
import type { Rejection } from './rejection.ts';
import { kindOf } from './source-name.ts';

export function formatQuarantineLine(
  kind: LogKind,
  receivedMicros: number,
  parsed: ParseResult,
  { code, message }: Rejection,
): string {
  const received_at = formatTimestamp(BigInt(receivedMicros));
  const reason = JSON.stringify({ source: kind, code, message, received_at });
  return `{"quarantine":${reason},${formatContent(parsed)}}\n`;
}

function formatContent(parsed: ParseResult): string {
  if ('rejection' in parsed) return `"line":${JSON.stringify(parsed.line ?? '')}`;
  try {
    return `"record":${stringifyExactJson(parsed.value)}`;
  } catch {
    return '"record":null'; // nested too deeply for JSON.stringify; the reason is kept
  }
}

/** Returns the kind and the rejected record, or undefined if the value does not come from a quarantine line. */
export function parseQuarantined(
  value: unknown,
  index: number,
): { kind: LogKind; parsed: ParseResult } | undefined {
  if (!isJsonObject(value) || !isJsonObject(value['quarantine'])) return undefined;
  const { source } = value['quarantine'];
  const kind = typeof source === 'string' ? kindOf(source) : undefined;
  if (kind === undefined) return undefined;
  const { line, record } = value;
  return { kind, parsed: typeof line === 'string' ? parseLine(line, index) : { index, value: record } };
}
