// Looking at values that parseExactJson gave.
import { isText } from './exact-json.ts';

export type JsonObject = Readonly<Record<string, unknown>>;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The object itself, or the one object of an array: some senders wrap every object in an array of one. */
export function unwrapObject(value: unknown): JsonObject | undefined {
  const only = Array.isArray(value) && value.length === 1 ? value[0] : value;
  return isJsonObject(only) ? only : undefined;
}

/** The text as valid Unicode, if `value` is text and not empty. */
export function nonEmptyText(value: unknown): string | undefined {
  return isText(value) && value !== '' ? value.toWellFormed() : undefined;
}

/**
 * Whether objects and arrays nest more than `levels` deep, the value itself being the first level. It goes no deeper
 * than that, so no sender can exhaust the stack with it (JSON.parse nests without limit, JSON.stringify does not).
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
