// Finds and parses a record's timestamp, and checks that it is neither more than an hour in the future nor past retention.
import { MAX_AHEAD_MICROS } from '../domain/limits.ts';
import { formatTimestamp, parseTimestamp, TIMESTAMP_FORMS } from '../domain/timestamp.ts';
import type { JsonObject } from '../system/parse-json.ts';
import { exactNumberText, isText } from './exact-json.ts';
import { quote, type Rejection } from './rejection.ts';

const MICROS_PER_DAY = 86_400_000_000;

const ALLOWED = `Allowed: ${TIMESTAMP_FORMS}, or an integer with 10, 13, 16 or 19 digits (seconds, milliseconds, microseconds or nanoseconds since 1970).`;

/** Other names of the field, in the order of their precedence. */
const OTHER_NAMES = ['time', 'ts', '@timestamp'];

/** The field with the timestamp: `timestamp` or, without it, the first field with another name that has a valid timestamp. */
export function findTimestampKey(record: JsonObject): string {
  const { timestamp } = record;
  if (timestamp !== undefined && timestamp !== null && timestamp !== '') return 'timestamp';
  return OTHER_NAMES.find(name => toMicros(record[name]) !== undefined) ?? 'timestamp';
}

/** Whether the timestamp in this field, which must be valid, has a fraction of a second. */
export function hasSubSecondPrecision(value: unknown): boolean {
  if (typeof value === 'number') return value >= 1e12;
  const numberText = exactNumberText(value);
  if (numberText !== undefined) return numberText.length >= 13;
  return isText(value) && /^\d{13,}$|[.,]\d/.test(value);
}

/**
 * Returns Unix microseconds, or why the timestamp is rejected. A record without a timestamp gets the time of arrival. `key` is the
 * field with the timestamp.
 */
export function readRecordTimestamp(
  record: JsonObject,
  nowMicros: number,
  retentionDays: number,
  key = findTimestampKey(record),
): number | Rejection {
  const value = record[key];
  const subject = key === 'timestamp' ? 'The timestamp' : `The timestamp in ${key}`;
  if (value === undefined || value === null || value === '') return nowMicros;
  const micros = toMicros(value);
  if (micros === undefined) {
    return {
      code: 'invalid_timestamp',
      message: `The timestamp ${describe(value)} is not valid. ${ALLOWED}`,
    };
  }
  if (micros > nowMicros + MAX_AHEAD_MICROS) {
    return {
      code: 'in_the_future',
      message: `${subject} ${format(micros)} is more than 1 hour in the future. The time of the server is ${format(nowMicros)}.`,
    };
  }
  if (micros < nowMicros - retentionDays * MICROS_PER_DAY) {
    return {
      code: 'past_retention',
      message: `${subject} ${format(micros)} is older than the retention of ${retentionDays} days.`,
    };
  }
  return micros;
}

function toMicros(value: unknown): number | undefined {
  if (typeof value === 'number') return integerToMicros(value);
  if (typeof value !== 'string') return undefined;
  const numberText = exactNumberText(value); // a number with too many digits for a double was parsed into a marked string
  if (numberText !== undefined) return digitsToMicros(numberText);
  const parsed = parseTimestamp(value);
  return parsed === undefined ? digitsToMicros(value) : Number(parsed);
}

// The number of digits determines the unit: from 2001 to 2286, a time in seconds has 10 digits, in milliseconds 13, in microseconds 16
// and in nanoseconds 19.
function integerToMicros(integer: number): number | undefined {
  if (!Number.isInteger(integer)) return undefined;
  if (integer >= 1e15 && integer < 1e16) return integer;
  if (integer >= 1e12 && integer < 1e13) return integer * 1000;
  if (integer >= 1e9 && integer < 1e10) return integer * 1_000_000;
  // Drops the last digits of the text, because dividing a nanosecond count in a double is not exact.
  return integer >= 1e18 && integer < 1e19 ? digitsToMicros(String(integer)) : undefined;
}

function digitsToMicros(digits: string): number | undefined {
  if (!/^\d{10,19}$/.test(digits)) return undefined;
  switch (digits.length) {
    case 10:
      return Number(digits) * 1_000_000;
    case 13:
      return Number(digits) * 1000;
    case 16:
      return Number(digits);
    case 19:
      return Number(digits.slice(0, 16));
    default:
      return undefined;
  }
}

function describe(value: unknown): string {
  const numberText = exactNumberText(value);
  if (numberText !== undefined) return numberText.length > 40 ? `${numberText.slice(0, 40)}…` : numberText;
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'object') return Array.isArray(value) ? '(an array)' : '(an object)';
  return String(value);
}

function format(micros: number): string {
  return formatTimestamp(BigInt(micros));
}
