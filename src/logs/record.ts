// The rules that make a log record out of what a sender shipped, or say why it is none. All of them; nothing else
// looks into a record before it is stored.
import type { LogKind } from '../domain/log-columns.ts';
import type { LogRecord } from '../domain/log-record.ts';
import { exactDigits, isText, unmark } from './exact-json.ts';
import { extractFields } from './extracted-fields.ts';
import { isJsonObject, type JsonObject, nestsDeeperThan, nonEmptyText } from './json-object.ts';
import { mergeMetadata } from './merge-metadata.ts';
import { readRecordTimestamp } from './record-timestamp.ts';
import { quote, type Rejection } from './rejection.ts';
import { makeUuidV7 } from './uuid-v7.ts';
import { toValidJson } from './valid-unicode.ts';

/** What a record is held against as it comes in. */
export interface RecordRules {
  /** The time of arrival, Unix microseconds. */
  readonly nowMicros: number;
  readonly retentionDays: number;
  /** The projects that the sender's token is pinned to; none: any project. */
  readonly projects?: readonly string[] | undefined;
}

/** In UTF-8 bytes of id, project, message and metadata. */
export const MAX_RECORD_BYTES = 1024 * 1024;
/** Of objects and arrays, the record itself being the first level. */
export const MAX_RECORD_LEVELS = 64;

/**
 * Makes a record of a value that `parseExactJson` gave. The value is not changed. Never throws. `sentMetadata` is the text
 * that the value's metadata was read from, where it is known.
 */
export function toRecord(
  value: unknown,
  kind: LogKind,
  door: RecordRules,
  sentMetadata?: string,
): LogRecord | Rejection {
  if (!isJsonObject(value)) return NOT_AN_OBJECT;
  if (nestsDeeperThan(value, MAX_RECORD_LEVELS)) return TOO_DEEP;

  const messageKey = findMessageKey(value);
  const eventMessage = (messageKey && nonEmptyText(value[messageKey])) ?? '';
  const metadata = mergeMetadata(value, messageKey);

  const project = findProject(value, metadata);
  if (project === undefined) return NO_PROJECT;
  if (door.projects !== undefined && !door.projects.includes(project)) {
    return {
      code: 'project_not_allowed',
      message: `The token may not send records of the project ${quote(project)}.`,
    };
  }
  if (eventMessage === '' && isEmpty(metadata)) return EMPTY_RECORD;

  const timestampMicros = readRecordTimestamp(value['timestamp'], door.nowMicros, door.retentionDays);
  if (typeof timestampMicros !== 'number') return timestampMicros;

  const id = readId(value['id']) ?? makeUuidV7(door.nowMicros);
  // As it was sent, unless fields came to it or half a surrogate pair may stand in it.
  const isAsSent =
    sentMetadata !== undefined && metadata === value['metadata'] && !SURROGATE.test(sentMetadata);
  const metadataText = isAsSent ? sentMetadata : unmark(toValidJson(JSON.stringify(metadata)));
  if (isTooLarge(id, project, eventMessage, metadataText)) return TOO_LARGE;
  return {
    id,
    timestampMicros,
    project,
    eventMessage,
    metadata: metadataText,
    extracted: extractFields(kind, metadata, project),
  };
}

const SURROGATE = /\\u[dD]/;

export function isRejection(result: LogRecord | Rejection): result is Rejection {
  return 'code' in result;
}

const NOT_AN_OBJECT: Rejection = {
  code: 'not_an_object',
  message: 'A record is a JSON object with event_message, metadata, timestamp, id and project.',
};
const TOO_DEEP: Rejection = {
  code: 'too_deep',
  message: `The record nests deeper than the ${MAX_RECORD_LEVELS} levels allowed.`,
};
const NO_PROJECT: Rejection = {
  code: 'no_project',
  message:
    'The record names no project. It is a non-empty text in project, metadata.project, metadata.project_ref, metadata.tenantId or metadata.external_id.',
};
const EMPTY_RECORD: Rejection = {
  code: 'empty_record',
  message: 'The record has neither a message (event_message or message) nor metadata; it needs one of them.',
};
const TOO_LARGE: Rejection = {
  code: 'too_large',
  message: 'The record is larger than the 1 MiB allowed.',
};

function findMessageKey(value: JsonObject): 'event_message' | 'message' | undefined {
  if (isText(value['event_message'])) return 'event_message';
  return isText(value['message']) ? 'message' : undefined;
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

function readId(value: unknown): string | undefined {
  if (typeof value === 'number' || typeof value === 'boolean') return String(value);
  return exactDigits(value) ?? nonEmptyText(value);
}

function isEmpty(object: JsonObject): boolean {
  for (const _ in object) return false;
  return true;
}

function isTooLarge(id: string, project: string, eventMessage: string, metadata: string): boolean {
  // No character takes more than 3 bytes of UTF-8 for each of its UTF-16 units: most records need no counting.
  const units = id.length + project.length + eventMessage.length + metadata.length;
  if (units * 3 <= MAX_RECORD_BYTES) return false;
  const bytes =
    Buffer.byteLength(id) +
    Buffer.byteLength(project) +
    Buffer.byteLength(eventMessage) +
    Buffer.byteLength(metadata);
  return bytes > MAX_RECORD_BYTES;
}
