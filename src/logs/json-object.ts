// Objects among values from parseExactJson.
import { isJsonObject, type JsonObject } from '../system/parse-json.ts';
import { isText } from './exact-json.ts';

/** Unlike Object.keys, this creates no array. */
export function hasAnyField(object: JsonObject): boolean {
  for (const _ in object) return true;
  return false;
}

/** Returns the object, or the only object of an array: some senders wrap every object in an array of one. */
export function unwrapObject(value: unknown): JsonObject | undefined {
  const unwrapped = Array.isArray(value) && value.length === 1 ? value[0] : value;
  return isJsonObject(unwrapped) ? unwrapped : undefined;
}

/** Returns a non-empty string as valid Unicode, or undefined for any other value. */
export function nonEmptyText(value: unknown): string | undefined {
  return isText(value) && value !== '' ? value.toWellFormed() : undefined;
}

/**
 * Whether objects and arrays are nested more than `levels` deep. The value itself is the first level. Call it before
 * JSON.stringify: JSON.parse accepts any depth, but JSON.stringify recurses and can exhaust the stack. This function cannot,
 * because it stops at `levels`.
 */
export function nestsDeeperThan(value: object, levels: number): boolean {
  if (levels === 0) return true;
  const inner = levels - 1;
  if (Array.isArray(value)) {
    for (const item of value) {
      if (typeof item === 'object' && item !== null && nestsDeeperThan(item, inner)) return true;
    }
    return false;
  }
  const object = value as JsonObject;
  for (const key in object) {
    const field = object[key];
    if (typeof field === 'object' && field !== null && nestsDeeperThan(field, inner)) return true;
  }
  return false;
}

export function setField(object: Record<string, unknown>, key: string, value: unknown): void {
  // Assigning to __proto__ would set the prototype and drop the field.
  if (key === '__proto__') {
    Object.defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  } else {
    object[key] = value;
  }
}
