// Validates one parsed value from a sender and turns it into a log record or a rejection. The rules for records are here and in
// record-timestamp.ts.
import { randomUUID } from 'node:crypto';
import { MAX_RECORD_BYTES, MAX_RECORD_LEVELS } from '../domain/limits.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { fieldSourceOf } from '../domain/log-fields.ts';
import type { EdgeFields, FunctionEdgeFields, LogRecord } from '../domain/log-record.ts';
import { findTextProblem } from '../domain/text-limit.ts';
import { isJsonObject, type JsonObject } from '../system/parse-json.ts';
import { exactNumberText, isText, unmarkNumbers } from './exact-json.ts';
import { hasAnyField, nestsDeeperThan, nonEmptyText, setField, unwrapObject } from './json-object.ts';
import { findTimestampKey, hasSubSecondPrecision, readRecordTimestamp } from './record-timestamp.ts';
import { quote, type Rejection } from './rejection.ts';

/** What the validation depends on besides the record. */
export interface ValidationContext {
  /** Time of arrival, Unix microseconds. */
  readonly nowMicros: number;
  readonly retentionDays: number;
  /** The projects that the sender's token is pinned to. Undefined: all projects. */
  readonly projects?: readonly string[] | undefined;
  /** The project of records that have none. Undefined: they are rejected. */
  readonly defaultProject?: string | undefined;
  /** Creates the id of a record that was sent without one (`createIdSequence`). */
  readonly createId: () => string;
}

/**
 * Turns a value from `parseExactJson` into a record or a rejection. Never throws and does not change the value.
 * `originalMetadata` is the text of the value's metadata as it was sent, if known.
 */
export function toRecord(
  value: unknown,
  kind: LogKind,
  context: ValidationContext,
  originalMetadata?: string,
): LogRecord | Rejection {
  if (!isJsonObject(value)) return NOT_AN_OBJECT;
  if (nestsDeeperThan(value, MAX_RECORD_LEVELS)) return TOO_DEEP;

  const messageKey = findMessageKey(value);
  const eventMessage = (messageKey && nonEmptyText(value[messageKey])) ?? '';
  const timestampKey = findTimestampKey(value);
  const metadata = mergeMetadata(value, messageKey, timestampKey);

  const project = findProject(value, metadata) ?? context.defaultProject;
  if (project === undefined) return NO_PROJECT;
  const projectProblem = findTextProblem(project);
  if (projectProblem !== undefined)
    return { code: 'invalid_project', message: `The project ${projectProblem}.` };
  if (context.projects !== undefined && !context.projects.includes(project)) {
    return {
      code: 'project_not_allowed',
      message: `The token is not allowed to send records for the project ${quote(project)}. In OpenTelemetry, the project comes from service.namespace of the resource, if it is set.`,
    };
  }
  if (eventMessage === '' && !hasAnyField(metadata)) return EMPTY_RECORD;
  const functionProblem =
    fieldSourceOf(kind, 'function') && findTextProblem(toId(metadata['function_id']) ?? '');
  if (functionProblem !== undefined)
    return {
      code: 'invalid_function_id',
      message: `The function id (metadata.function_id) ${functionProblem}.`,
    };

  const { nowMicros, retentionDays } = context;
  const timestampMicros = readRecordTimestamp(value, nowMicros, retentionDays, timestampKey);
  if (typeof timestampMicros !== 'number') return timestampMicros;

  const id = readId(value['id']) ?? context.createId();
  // Keeps the original text, unless fields were added or it may contain a lone surrogate.
  const canKeepOriginal =
    originalMetadata !== undefined &&
    metadata === value['metadata'] &&
    !SURROGATE_ESCAPE.test(originalMetadata);
  const storedMetadata = canKeepOriginal
    ? originalMetadata
    : unmarkNumbers(replaceLoneSurrogates(JSON.stringify(metadata)));
  if (isTooLarge(id, project, eventMessage, storedMetadata)) return TOO_LARGE;
  return {
    id,
    timestampMicros,
    project,
    eventMessage,
    metadata: storedMetadata,
    extracted: extractFields(kind, metadata, project),
  };
}

const SURROGATE_ESCAPE = /\\u[dD]/;

export function isRejection(result: LogRecord | Rejection): result is Rejection {
  return 'code' in result;
}

/**
 * Whether a record has an id or a timestamp with sub-second precision. Without either, two equal records may be two events. So if
 * a request has a record without either, and no Idempotency-Key, a second request with an equal body is a repeat only if the
 * response to the first was not delivered.
 */
export function hasIdentity(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  return readId(value['id']) !== undefined || hasSubSecondPrecision(value[findTimestampKey(value)]);
}

const NOT_AN_OBJECT: Rejection = {
  code: 'not_an_object',
  message:
    'The record is not a JSON object. Send an object with event_message, metadata, timestamp, id and project.',
};
const TOO_DEEP: Rejection = {
  code: 'too_deep',
  message: `The record is nested more than ${MAX_RECORD_LEVELS} levels deep.`,
};
const NO_PROJECT: Rejection = {
  code: 'no_project',
  message:
    'The record has no project. Set one of these to a non-empty string: project, metadata.project, metadata.project_ref, metadata.tenantId, metadata.external_id; in OpenTelemetry also service.namespace of the resource, or send it with a token that is pinned to one project.',
};
const EMPTY_RECORD: Rejection = {
  code: 'empty_record',
  message:
    'The record has neither a message (event_message, message, msg, log or body) nor metadata. At least one is required.',
};
const TOO_LARGE: Rejection = {
  code: 'too_large',
  message: 'The record is larger than 1 MiB: id, project, message and metadata together.',
};

/** Other names of the field, in the order of their precedence. */
const OTHER_MESSAGE_NAMES = ['msg', 'log', 'body'];

/**
 * The field with the message: the first text of `event_message` and `message` or, if the record has neither, the first text that is
 * not empty in a field with another name.
 */
export function findMessageKey(record: JsonObject): string | undefined {
  const { event_message, message } = record;
  if (isText(event_message)) return 'event_message';
  if (isText(message)) return 'message';
  const isAbsent = (event_message ?? message ?? null) === null;
  return isAbsent ? OTHER_MESSAGE_NAMES.find(name => nonEmptyText(record[name]) !== undefined) : undefined;
}

/** The project of a value from a sender, whether or not the value is a valid record. */
export function projectOf(value: unknown): string | undefined {
  return isJsonObject(value) ? findProject(value, mergeMetadata(value)) : undefined;
}

function findProject(value: JsonObject, metadata: JsonObject): string | undefined {
  return (
    nonEmptyText(value['project']) ??
    nonEmptyText(metadata['project']) ??
    nonEmptyText(metadata['project_ref']) ??
    nonEmptyText(metadata['tenantId']) ??
    nonEmptyText(metadata['external_id'])
  );
}

/**
 * Combines the record's metadata with its extra top-level fields (`isExtraField`). If both have a field of the same name, that
 * of the metadata is kept. `messageKey` and `timestampKey` are the fields that became the message and the timestamp. Does not change
 * its arguments.
 */
function mergeMetadata(record: JsonObject, messageKey?: string, timestampKey?: string): JsonObject {
  const metadata = record['metadata'];
  const metadataObject = unwrapObject(metadata);
  let merged: Record<string, unknown> | undefined;
  // Metadata that is not an object becomes a field of the merged metadata.
  if (metadataObject === undefined && metadata !== undefined && metadata !== null) merged = { metadata };
  for (const key in record) {
    if (key === messageKey || key === timestampKey || !isExtraField(key, record[key])) continue;
    merged ??= { ...metadataObject };
    if (!Object.hasOwn(merged, key)) setField(merged, key, record[key]);
  }
  return merged ?? metadataObject ?? {};
}

/** Whether `mergeMetadata` adds this top-level field to the metadata. */
function isExtraField(key: string, field: unknown): boolean {
  switch (key) {
    case 'metadata':
    case 'timestamp':
      return false;
    case 'event_message':
    case 'message':
      return field !== null;
    case 'id':
      return typeof field === 'object' && field !== null;
    case 'project':
      return !isText(field) || field === '';
    default:
      return true;
  }
}

function readId(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return exactNumberText(value) ?? nonEmptyText(value);
}

function isTooLarge(id: string, project: string, eventMessage: string, metadata: string): boolean {
  // A UTF-16 code unit takes at most 3 bytes in UTF-8, so the exact length of most records is not needed.
  const codeUnits = id.length + project.length + eventMessage.length + metadata.length;
  if (codeUnits * 3 <= MAX_RECORD_BYTES) return false;
  const byteLength =
    Buffer.byteLength(id) +
    Buffer.byteLength(project) +
    Buffer.byteLength(eventMessage) +
    Buffer.byteLength(metadata);
  return byteLength > MAX_RECORD_BYTES;
}

// JSON.stringify writes a lone surrogate as \udXXX. The second alternative consumes every other escape, so that an escaped
// backslash followed by letters (`\\ud800`) does not match the first.
const ESCAPE = /\\(?:ud[89a-f][0-9a-f]{2}|.)/g;

/**
 * Replaces lone surrogates, in keys and values, with U+FFFD: UTF-8 cannot encode them, and a store would reject the
 * whole batch. `json` must be the output of JSON.stringify.
 */
function replaceLoneSurrogates(json: string): string {
  if (!json.includes('\\ud')) return json;
  const valid = json.replace(ESCAPE, match => (match.startsWith('\\ud') ? '\ufffd' : match));
  // Two keys may have become equal. Parsing removes duplicate keys and keeps the last value.
  return JSON.stringify(JSON.parse(valid));
}

const NO_FIELDS: Record<never, never> = Object.freeze({});

/**
 * Some metadata fields get columns of their own, because saved queries filter or aggregate them. Reads their values, and does not
 * change the metadata.
 */
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
  return {
    function_id: toId(metadata['function_id']),
    execution_time_ms: toMilliseconds(metadata['execution_time_ms']),
    status_code: readStatus(metadata),
  };
}

function readStatus(metadata: JsonObject): number | null {
  const response = unwrapObject(metadata['response']);
  return toStatus(response?.['status_code'] ?? metadata['response.status_code']);
}

/** Whether a record as the sender wrote it, of an edge or function_edge log, has a status of 500 or higher. */
export function hasServerError(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  return (readStatus(mergeMetadata(value)) ?? 0) >= 500;
}

function toId(value: unknown): string | null {
  if (isText(value)) return value.toWellFormed();
  return typeof value === 'number' ? String(value) : (exactNumberText(value) ?? null);
}

// Number() alone would accept '', ' ' and '0x1f'.
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/;

function toMilliseconds(value: unknown): number | null {
  const number = toNumber(value);
  return Number.isFinite(number) ? number : null;
}

const MIN_INT32 = -(2 ** 31);
const MAX_INT32 = 2 ** 31 - 1;

/**
 * A number that is no 32-bit integer, which the column holds, is rounded down and limited to those. So every number is on the same side
 * of 400 and 500 as the one that was sent.
 */
function toStatus(value: unknown): number | null {
  const number = toNumber(value);
  // Adding 0 turns -0 into 0.
  return Number.isNaN(number) ? null : Math.max(MIN_INT32, Math.min(MAX_INT32, Math.floor(number))) + 0;
}

/** Of a number, or a text with a number, with or without spaces around it. NaN for any other value. */
function toNumber(value: unknown): number {
  if (typeof value === 'number') return value;
  const text = exactNumberText(value) ?? (isText(value) ? value.trim() : '');
  return DECIMAL.test(text) ? Number(text) : Number.NaN;
}

/** Three hex digits before the variant and three after it, so the counter has 24 bits. */
const COUNTER_HEX_DIGITS = 6;
/** The counter starts in the lower half of its range. The upper half has more numbers than the largest body has records. */
const COUNTER_START_LIMIT = 2 ** 23;

/**
 * Returns a function that creates the ids of the records of one body that were sent without one: UUIDv7 (RFC 9562), which is 48 bits of Unix milliseconds, a counter, then 48 random bits. All ids of
 * the body have its time of arrival, so only the counter decides their order. Two bodies differ in the start of the counter and
 * in the random bits.
 */
export function createIdSequence(nowMicros: number): () => string {
  const millis = Math.floor(nowMicros / 1000)
    .toString(16)
    .padStart(12, '0');
  const prefix = `${millis.slice(0, 8)}-${millis.slice(8)}-7`;
  let counter = Number.parseInt(randomUUID().slice(0, 8), 16) % COUNTER_START_LIMIT;
  return () => {
    const digits = (counter++).toString(16).padStart(COUNTER_HEX_DIGITS, '0');
    // 8 is the variant. randomUUID() is fast because it generates random bytes in bulk.
    return `${prefix}${digits.slice(0, 3)}-8${digits.slice(3)}-${randomUUID().slice(24)}`;
  };
}
