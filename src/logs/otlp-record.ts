// Maps log records of the OpenTelemetry protocol (OTLP) to records as senders of /api/logs write them, so that record.ts validates
// both by the same rules. otlp-protobuf.ts and otlp-json.ts decode the two encodings.
import { DendroError } from '../domain/errors.ts';
import { MAX_OTLP_RECORDS, MAX_RECORD_LEVELS } from '../domain/limits.ts';
import { formatTimestamp } from '../domain/timestamp.ts';
import { isJsonObject, type JsonObject } from '../system/parse-json.ts';
import { isText, stringifyExactJson } from './exact-json.ts';
import { hasAnyField, nestsDeeperThan, nonEmptyText, unwrapObject } from './json-object.ts';
import type { ParseResult } from './parse.ts';
import { findMessageKey } from './record.ts';
import { type OtlpKindRules, otlpSourceOf } from './source-name.ts';

/** A decoded record. Records of the same resource and scope share these two objects. */
export interface OtlpEntry {
  /** The attributes of the resource. */
  readonly resource: JsonObject;
  /** `name`, `version` and `attributes`, as far as they are not empty. */
  readonly scope: JsonObject;
  readonly record: OtlpRecord;
}

/** Empty strings, zeros and null: the sender did not set the field. */
export interface OtlpRecord {
  /** Unix microseconds. */
  timeMicros: number;
  observedMicros: number;
  severityNumber: number;
  severityText: string;
  eventName: string;
  /** Lower-case hexadecimal digits. */
  traceId: string;
  spanId: string;
  body: unknown;
  readonly attributes: Record<string, unknown>;
}

/** Arrays and key-value lists that are nested deeper are decoded as empty: the record is rejected anyway. */
export const MAX_VALUE_LEVELS = MAX_RECORD_LEVELS;

/**
 * The resource and the scope are stored with each of their records. This limits the length of all copies together, in
 * UTF-16 code units: otherwise a small body with a large resource and many records would take gigabytes.
 */
const MAX_COPIED_LENGTH = 64 * 1024 * 1024;

export function createOtlpRecord(): OtlpRecord {
  return {
    timeMicros: 0,
    observedMicros: 0,
    severityNumber: 0,
    severityText: '',
    eventName: '',
    traceId: '',
    spanId: '',
    body: null,
    attributes: {},
  };
}

/** The scope of an entry, without its empty fields. */
export function toScope(name: string, version: string, attributes: JsonObject): JsonObject {
  return {
    ...(name !== '' && { name }),
    ...(version !== '' && { version }),
    ...(hasAnyField(attributes) && { attributes }),
  };
}

export function* toIntakeRecords(
  entries: Iterable<OtlpEntry>,
  kindRules: OtlpKindRules,
): Generator<ParseResult> {
  let index = 0;
  let copiedLength = 0;
  let last: { resource: JsonObject; scope: JsonObject; length: number; source: string } | undefined;
  for (const { resource, scope, record } of entries) {
    if (last?.resource !== resource || last.scope !== scope) {
      const source = otlpSourceOf(kindRules, textOf(resource['service.name']), textOf(scope['name']));
      last = { resource, scope, length: JSON.stringify([resource, scope]).length, source };
    }
    copiedLength += last.length;
    if (index >= MAX_OTLP_RECORDS || copiedLength > MAX_COPIED_LENGTH) throw tooManyRecords();
    yield { index: index++, source: last.source, value: toIntakeRecord(resource, scope, record) };
  }
}

function textOf(value: unknown): string {
  return nonEmptyText(value) ?? '';
}

/** Changes the attributes of the record: they become its metadata. */
function toIntakeRecord(resource: JsonObject, scope: JsonObject, record: OtlpRecord): JsonObject {
  const { attributes: metadata, body, eventName } = record;
  // A key-value list is a record as /api/logs accepts it: Supabase's drains send id, project and metadata this way, and the message
  // as the name of the event.
  const fields = isJsonObject(body) ? body : {};
  const messageKey = findMessageKey(fields);
  const message = messageKey === undefined ? body : fields[messageKey];
  const hasMessage = nonEmptyText(message) !== undefined;
  const isEvent = !hasMessage && eventName !== '';
  const project = findProject(resource, metadata) ?? fields['project'];
  addField(metadata, 'level', record.severityText || levelOf(record.severityNumber));
  addField(metadata, 'severity_number', record.severityNumber || '');
  if (!isEvent) addField(metadata, 'event_name', eventName);
  else if (body !== null && !isJsonObject(body)) addField(metadata, 'body', body);
  addField(metadata, 'trace_id', withoutZeros(record.traceId));
  addField(metadata, 'span_id', withoutZeros(record.spanId));
  addField(metadata, 'scope', scope);
  addField(metadata, 'resource', resource);
  const toOwnMessage = () => (isJsonObject(body) && hasMessage ? fields['event_message'] : toMessage(body));
  const value = {
    ...fields,
    ...(project !== undefined && { project }),
    event_message: (isEvent ? eventName : toOwnMessage()) ?? null,
    timestamp: toTimestamp(record.timeMicros || record.observedMicros) ?? fields['timestamp'] ?? null,
    metadata: 'metadata' in fields ? { ...metadata, ...toMetadata(fields['metadata']) } : metadata,
  };
  keepReplaced(fields, value, value.metadata);
  return value;
}

/** Keeps the fields of a key-value list whose names have other values in the record or in its metadata. */
function keepReplaced(fields: JsonObject, value: JsonObject, metadata: Record<string, unknown>): void {
  for (const name in fields) {
    const field = fields[name];
    const isSet = name !== 'metadata' && field !== null && field !== '';
    const isReplaced = value[name] !== field || (Object.hasOwn(metadata, name) && metadata[name] !== field);
    if (isSet && isReplaced) metadata[`body.${name}`] = field;
  }
}

/** The metadata in a key-value list. A value that is no object becomes a field, as in record.ts. */
function toMetadata(metadata: unknown): JsonObject {
  return unwrapObject(metadata) ?? (metadata === undefined || metadata === null ? {} : { metadata });
}

/** Undefined: record.ts looks for the project in the other fields where senders write it. */
function findProject(resource: JsonObject, attributes: JsonObject): string | undefined {
  return (
    nonEmptyText(resource['service.namespace']) ??
    nonEmptyText(attributes['project']) ??
    nonEmptyText(attributes['project_ref']) ??
    nonEmptyText(resource['project']) ??
    nonEmptyText(resource['project_ref'])
  );
}

/** Adds the field if the sender has set it. An attribute of the same name with another value is renamed first. */
function addField(metadata: Record<string, unknown>, name: string, value: unknown): void {
  const isSet = isJsonObject(value) ? hasAnyField(value) : value !== '';
  if (!isSet) return;
  if (Object.hasOwn(metadata, name) && metadata[name] !== value)
    metadata[`attributes.${name}`] = metadata[name];
  metadata[name] = value;
}

const LEVELS = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL'];

/** Four severity numbers belong to each level: TRACE has 1 to 4. */
function levelOf(severityNumber: number): string {
  return LEVELS[Math.floor((severityNumber - 1) / 4)] ?? '';
}

/** An id of zeros is no id. */
function withoutZeros(id: string): string {
  return /[^0]/.test(id) ? id : '';
}

/** A body that is not text becomes its JSON text. If it is nested too deeply, it stays as it is, and record.ts rejects the record. */
function toMessage(body: unknown): unknown {
  if (body === null || isText(body)) return body;
  const isTooDeep = typeof body === 'object' && body !== null && nestsDeeperThan(body, MAX_RECORD_LEVELS - 1);
  return isTooDeep ? body : stringifyExactJson(body);
}

/** record-timestamp.ts takes a number for microseconds only if it has 16 digits. Any other time is written as text. */
function toTimestamp(micros: number): number | string | null {
  if (micros === 0) return null;
  return micros >= 1e15 && micros < 1e16 ? micros : formatTimestamp(BigInt(micros));
}

function tooManyRecords(): DendroError {
  return new DendroError(
    'payload_too_large',
    'the body contains too many records, or too many records of a large resource; send smaller batches',
  );
}
