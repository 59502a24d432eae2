// Whether a record tells itself apart from another one with the same text.
import { exactDigits, isText } from './exact-json.ts';
import { isJsonObject } from './json-object.ts';

/** It carries an id, or a timestamp finer than a second. Two equal lines without are two events, not one sent twice. */
export function hasIdentity(value: unknown): boolean {
  if (!isJsonObject(value)) return false;
  const { id, timestamp } = value;
  return isId(id) || isFinerThanASecond(timestamp);
}

function isId(id: unknown): boolean {
  return typeof id === 'number' || typeof id === 'boolean' || (typeof id === 'string' && id !== '');
}

function isFinerThanASecond(timestamp: unknown): boolean {
  if (typeof timestamp === 'number') return timestamp >= 1e12;
  const digits = exactDigits(timestamp);
  if (digits !== undefined) return digits.length >= 13;
  return isText(timestamp) && /^\d{13,}$|:\d\d[.,]\d/.test(timestamp);
}
