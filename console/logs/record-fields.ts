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
  return `${record['timestamp']} ${record['id']} ${record['kind']}`;
}

/** Unix microseconds. */
export function readMicros(record: Row): number {
  return Number(record['timestamp']);
}

export function readField(record: Row, field: FieldName): string | undefined {
  for (const path of PATHS[field]) {
    const text = readPathText(record, path);
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

/** The text or number at a path, such as `metadata.region` or `request.headers."x/y"`. */
export function readPathText({ metadata }: Row, name: string): string | undefined {
  const parts = name.replace(/^metadata\./, '').match(/"(?:\\["\\]|[^"])*"|[^.]+/g) ?? [];
  const keys = parts.map(key => (key.startsWith('"') ? key.slice(1, -1).replace(/\\(["\\])/g, '$1') : key));
  return toText(readPath(metadata, keys)) ?? toText(readPath(metadata, [keys.join('.')]));
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

/**
 * The keys that lead to a place in the metadata. If each object is the only item of an array, as some log shippers write them, the
 * arrays have no key. Undefined if the place is in any other array: the server does not find it by its keys.
 */
export function toKeys(metadata: unknown, path: readonly string[]): string[] | undefined {
  const keys: string[] = [];
  let current = metadata;
  let arrays = 0;
  for (const key of path) {
    const isArray = Array.isArray(current);
    if (!isArray) keys.push(key);
    else if ((current as unknown[]).length > 1) return undefined;
    current = (current as Record<string, unknown>)[key];
    if (isArray) arrays += 1;
  }
  return arrays === 0 || arrays === keys.length - 1 ? keys : undefined;
}

/** The path as the name of a field in a search expression; undefined if it has none. */
function toPathName(path: readonly string[]): string | undefined {
  // A single key with dots, as OpenTelemetry has it, needs no quotes.
  const parts = path.length === 1 ? (path[0] ?? '').split('.') : path;
  const keys = parts.every(key => PLAIN_KEY.test(key)) ? parts : path;
  if (keys.some(key => key === '' || key === '*')) return undefined;
  const [first = '', ...others] = keys;
  const name = keys.map(key => (PLAIN_KEY.test(key) ? key : `"${key.replace(/["\\]/g, '\\$&')}"`)).join('.');
  if (name === 'trace_id') return name;
  const isWhole = others.length > 0 && /^[a-z_][\w-]*$/i.test(first) && first !== 'metadata';
  return isWhole ? name : `metadata.${name}`;
}

const PLAIN_KEY = /^[\w-]+$/;

/** Where the metadata of a log kind has its fields, such as `response.status_code`. */
export type FieldPlaces = Readonly<Partial<Record<FieldName, string>>>;

/**
 * The field of a search expression for the value at this place in the metadata: its short name if the kind has one, otherwise its
 * path. Undefined if a path cannot express the place.
 */
export function findField(
  places: FieldPlaces,
  metadata: unknown,
  path: readonly string[],
  value: string,
): string | undefined {
  const keys = toKeys(metadata, path);
  if (keys === undefined) return undefined;
  const [field] = Object.entries(places).find(([, place]) => place === keys.join('.')) ?? [];
  const isValid = field !== 'status' || /^[1-5]\d\d$/.test(value);
  return isValid && field !== undefined ? field : toPathName(keys);
}

/** Enough for suggestions. */
const MAX_PATHS = 1000;

/** The paths of the values in the metadata of these records that have no short name. */
export function listPaths(records: readonly Row[], placesOf: (record: Row) => FieldPlaces): string[] {
  const paths = new Set<string>();
  const add = (record: Row, value: unknown, path: readonly string[]) => {
    const isBranch = value !== null && typeof value === 'object' && !(value instanceof ExactNumber);
    if (isBranch) for (const [key, child] of Object.entries(value)) add(record, child, [...path, key]);
    else paths.add(findField(placesOf(record), record['metadata'], path, '200') ?? '');
  };
  for (const record of records) if (paths.size < MAX_PATHS) add(record, record['metadata'], []);
  return [...paths].filter(name => name.includes('.')).sort();
}

const ID_KEYS = ['request_id', 'x_request_id', 'sb_request_id', 'trace_id', 'cf_ray'];

/** The ids in the metadata, at any depth, that other logs of the same request can have, by their values. */
export function findRequestIds(metadata: unknown): Map<string, string> {
  const ids = new Map<string, string>();
  const add = (value: unknown, key: string) => {
    const text = toText(value);
    if (text !== undefined && ID_KEYS.includes(key.toLowerCase().replaceAll('-', '_')))
      ids.set(text, ids.get(text) ?? key);
    if (value === null || typeof value !== 'object' || value instanceof ExactNumber) return;
    for (const [childKey, child] of Object.entries(value)) add(child, childKey);
  };
  add(metadata, '');
  return ids;
}

function toText(value: unknown): string | undefined {
  if (value instanceof ExactNumber) return value.digits;
  if (typeof value === 'number' || (typeof value === 'string' && value !== '')) return String(value);
  return undefined;
}
