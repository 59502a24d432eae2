// Lifts out of the metadata what the saved queries filter and count. The metadata itself stays as it was sent.
import type { LogKind } from '../domain/log-columns.ts';
import type { EdgeFields, FunctionEdgeFields, LogRecord } from '../domain/log-record.ts';
import { exactDigits, isText } from './exact-json.ts';
import { type JsonObject, nonEmptyText, unwrapObject } from './json-object.ts';

const NOTHING: Record<never, never> = Object.freeze({});

export function extractFields(kind: LogKind, metadata: JsonObject, project: string): LogRecord['extracted'] {
  if (kind === 'edge') return extractEdge(metadata, project);
  if (kind === 'function_edge') return extractFunctionEdge(metadata);
  return NOTHING;
}

function extractEdge(metadata: JsonObject, project: string): EdgeFields {
  const request = unwrapObject(metadata['request']);
  const sentUrl = nonEmptyText(request?.['url']);
  const sentPath = nonEmptyText(request?.['path']);
  if (sentUrl !== undefined) return { url: sentUrl, path: sentPath ?? pathOf(sentUrl) };
  const path = sentPath ?? '';
  return { url: `https://${nonEmptyText(request?.['host']) ?? project}${path}`, path };
}

// The expression of RFC 3986, appendix B, down to the path. `new URL` is slow, refuses what senders write and changes
// the rest.
const UP_TO_PATH = /^(?:[^:/?#]+:)?(?:\/\/[^/?#]*)?([^?#]*)/;

function pathOf(url: string): string {
  return UP_TO_PATH.exec(url)?.[1] ?? '';
}

function extractFunctionEdge(metadata: JsonObject): FunctionEdgeFields {
  const response = unwrapObject(metadata['response']);
  return {
    function_id: toId(metadata['function_id']),
    execution_time_ms: toMilliseconds(metadata['execution_time_ms']),
    status_code: toInt32(response?.['status_code']),
  };
}

function toId(value: unknown): string | null {
  if (isText(value)) return value.toWellFormed();
  return typeof value === 'number' ? String(value) : (exactDigits(value) ?? null);
}

// Number() alone would read '', ' ' and '0x1f' as numbers.
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

/** Over 30,000 years. What is longer is no execution time, and would make an average overflow. */
const LONGEST_MS = 1e15;

function toMilliseconds(value: unknown): number | null {
  const number = typeof value === 'number' ? value : toNumber(exactDigits(value) ?? value, DECIMAL);
  return Math.abs(number) <= LONGEST_MS ? number : null;
}

function toInt32(value: unknown): number | null {
  const number = typeof value === 'number' ? value : toNumber(value, /^-?\d+$/);
  // The bitwise "or" gives back what fits 32 bits, and only that, unchanged.
  return (number | 0) === number ? number | 0 : null;
}

function toNumber(value: unknown, form: RegExp): number {
  return isText(value) && form.test(value) ? Number(value) : Number.NaN;
}
