// A record that was not taken, as it is kept for the operator, one a line: what came, under which source, when, and why
// not. `dendro ingest` reads such lines again.
import type { LogKind } from '../domain/log-columns.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import { stringifyExactJson } from './exact-json.ts';
import { isJsonObject } from './json-object.ts';
import { type Parsed, parseLine } from './parse.ts';
import type { Rejection } from './rejection.ts';
import { kindOf } from './source-name.ts';

export function formatQuarantineLine(
  kind: LogKind,
  receivedMicros: number,
  parsed: Parsed,
  { code, message }: Rejection,
): string {
  const received_at = formatTimestamp(BigInt(receivedMicros));
  const reason = JSON.stringify({ source: kind, code, message, received_at });
  return `{"quarantine":${reason},${contentOf(parsed)}}\n`;
}

function contentOf(parsed: Parsed): string {
  if ('rejection' in parsed) return `"line":${JSON.stringify(parsed.line ?? '')}`;
  try {
    return `"record":${stringifyExactJson(parsed.value)}`;
  } catch {
    return '"record":null'; // nested so deeply that it cannot be written; the sender has the reason
  }
}

/** The kind and the record in a value that was read from such a line, or undefined if it is something else. */
export function parseQuarantined(
  value: unknown,
  index: number,
): { kind: LogKind; parsed: Parsed } | undefined {
  if (!isJsonObject(value) || !isJsonObject(value['quarantine'])) return undefined;
  const { source } = value['quarantine'];
  const kind = typeof source === 'string' ? kindOf(source) : undefined;
  if (kind === undefined) return undefined;
  const { line, record } = value;
  return { kind, parsed: typeof line === 'string' ? parseLine(line, index) : { index, value: record } };
}
