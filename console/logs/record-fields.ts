// Reads the fields of a log record that the list shows and the search expression knows, from the metadata of each log kind.

import { ExactNumber } from '../api/exact-json.ts';
import type { Row } from '../api/query-result.ts';

export type FieldName = 'status' | 'method' | 'path' | 'host' | 'function' | 'level';

/** Where the metadata of the log kinds has the fields, in the order of precedence. OpenTelemetry has names with dots as one key. */
const PATHS: Readonly<Record<FieldName, readonly string[]>> = {
  status: ['response.status_code', 'status_code', 'status', 'res.statusCode'],
  method: ['request.method', 'method', 'req.method'],
  path: ['request.path', 'request.pathname', 'path', 'req.url', 'request.url'],
  host: ['request.host', 'host', 'req.hostname'],
  function: ['function_id'],
  level: ['level', 'parsed.error_severity'],
};

/** Identifies a record within the results of a query. */
export function toRowKey(record: Row): string {
  return `${record['timestamp']} ${record['id']}`;
}

/** Unix microseconds. */
export function readMicros(record: Row): number {
  return Number(record['timestamp']);
}

export function readField(record: Row, field: FieldName): string | undefined {
  for (const path of PATHS[field]) {
    const { metadata } = record;
    const text = toText(readPath(metadata, path.split('.'))) ?? toText(readPath(metadata, [path]));
    if (text !== undefined) return field === 'path' ? toUrlPath(text) : text;
  }
  return undefined;
}

/** The path of a full URL; any other text is a path already. */
function toUrlPath(text: string): string {
  return /^https?:/i.test(text) && URL.canParse(text) ? new URL(text).pathname : text;
}

export function readStatus(record: Row): number | undefined {
  const status = Number(readField(record, 'status') ?? Number.NaN);
  return Number.isInteger(status) && status >= 100 && status <= 999 ? status : undefined;
}

export function readExecutionTime(record: Row): number | undefined {
  const text = toText(readPath(record['metadata'], ['execution_time_ms']));
  const ms = Number(text ?? Number.NaN);
  return Number.isFinite(ms) ? ms : undefined;
}

/** A record without a message shows the method and path of its request. */
export function readMessage(record: Row): string {
  const { event_message: message } = record;
  if (typeof message === 'string' && message !== '') return message;
  const request = [readField(record, 'method'), readField(record, 'path')];
  return request.filter(text => text !== undefined).join(' ') || '(no message)';
}

/** Also reads through arrays, because some log shippers wrap every object in an array of one element. */
export function readPath(value: unknown, path: readonly string[]): unknown {
  let current = value;
  for (const key of path) {
    if (Array.isArray(current)) current = current[0];
    if (current === null || typeof current !== 'object') return undefined;
    current = (current as Record<string, unknown>)[key];
  }
  return current;
}

function toText(value: unknown): string | undefined {
  if (value instanceof ExactNumber) return value.digits;
  if (typeof value === 'number' || (typeof value === 'string' && value !== '')) return String(value);
  return undefined;
}
