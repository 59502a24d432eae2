// Gathers what a record's metadata will be: the metadata that was sent, and every top-level field that has no place of
// its own in a record.
import { isText } from './exact-json.ts';
import { type JsonObject, unwrapObject } from './json-object.ts';

/** `messageKey` is the field that became the record's message. Neither object is changed. */
export function mergeMetadata(record: JsonObject, messageKey: string | undefined): JsonObject {
  const sent = record['metadata'];
  const own = unwrapObject(sent);
  let merged: Record<string, unknown> | undefined;
  // Metadata that is no object is data all the same.
  if (own === undefined && sent !== undefined && sent !== null) merged = { metadata: sent };
  for (const key in record) {
    if (!isOtherField(key, record[key], messageKey)) continue;
    merged ??= { ...own };
    if (!Object.hasOwn(merged, key)) setField(merged, key, record[key]);
  }
  return merged ?? own ?? {};
}

function isOtherField(key: string, field: unknown, messageKey: string | undefined): boolean {
  switch (key) {
    case 'metadata':
    case 'timestamp':
      return false;
    case 'event_message':
    case 'message':
      return key !== messageKey && field !== null;
    case 'id':
      return typeof field === 'object' && field !== null;
    case 'project':
      return !isText(field) || field === '';
    default:
      return true;
  }
}

function setField(object: Record<string, unknown>, key: string, value: unknown): void {
  // Assigning to __proto__ would set the prototype and lose the field.
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  } else {
    object[key] = value;
  }
}
