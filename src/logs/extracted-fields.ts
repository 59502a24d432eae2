// Some metadata fields get columns of their own, because saved queries filter or aggregate them. This file reads their values.
// Does not change the metadata.
import type { LogKind } from '../domain/log-columns.ts';
import type { EdgeFields, FunctionEdgeFields, LogRecord } from '../domain/log-record.ts';
import { exactNumberText, isText } from './exact-json.ts';
import { type JsonObject, nonEmptyText, unwrapObject } from './json-object.ts';

const NO_FIELDS: Record<never, never> = Object.freeze({});

export function extractFields(kind: LogKind, metadata: JsonObject, project: string): LogRecord['extracted'] {
  if (kind === 'edge') return extractEdge(metadata, project);
  if (kind === 'function_edge') return extractFunctionEdge(metadata);
  return NO_FIELDS;
}

// OpenTelemetry has flat attributes such as `request.path`, so a name with a dot counts like a field of a nested object.

function extractEdge(metadata: JsonObject, project: string): EdgeFields {
  const request = unwrapObject(metadata['request']);
  const readText = (name: string) =>
    nonEmptyText(request?.[name]) ?? nonEmptyText(metadata[`request.${name}`]);
  const sentUrl = readText('url');
  const sentPath = readText('path');
  if (sentUrl !== undefined) return { url: sentUrl, path: sentPath ?? pathOf(sentUrl) };
  const path = sentPath ?? '';
  return { url: `https://${readText('host') ?? project}${path}`, path };
}

// The regular expression of RFC 3986, appendix B, up to the path. `new URL` is slow, rejects URLs that senders write, and
// normalizes the others.
const UP_TO_PATH = /^(?:[^:/?#]+:)?(?:\/\/[^/?#]*)?([^?#]*)/;

function pathOf(url: string): string {
  return UP_TO_PATH.exec(url)?.[1] ?? '';
}

function extractFunctionEdge(metadata: JsonObject): FunctionEdgeFields {
  const response = unwrapObject(metadata['response']);
  return {
    function_id: toId(metadata['function_id']),
    execution_time_ms: toMilliseconds(metadata['execution_time_ms']),
    status_code: toInt32(response?.['status_code'] ?? metadata['response.status_code']),
  };
}

function toId(value: unknown): string | null {
  if (isText(value)) return value.toWellFormed();
  return typeof value === 'number' ? String(value) : (exactNumberText(value) ?? null);
}

// Number() alone would accept '', ' ' and '0x1f'.
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

/** Over 30,000 years. A larger value is not an execution time, and could overflow an average. */
const MAX_MILLISECONDS = 1e15;

function toMilliseconds(value: unknown): number | null {
  const number = typeof value === 'number' ? value : toNumber(exactNumberText(value) ?? value, DECIMAL);
  return Math.abs(number) <= MAX_MILLISECONDS ? number : null;
}

function toInt32(value: unknown): number | null {
  const number = typeof value === 'number' ? value : toNumber(value, /^-?\d+$/);
  // `| 0` converts to a 32-bit integer, so it leaves the number unchanged only if it fits. The second `| 0` turns -0 into 0.
  return (number | 0) === number ? number | 0 : null;
}

function toNumber(value: unknown, format: RegExp): number {
  return isText(value) && format.test(value) ? Number(value) : Number.NaN;
}
