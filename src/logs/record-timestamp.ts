// Reads a record's timestamp and holds it against the clock.
import { formatTimestamp, parseTimestamp, TIMESTAMP_FORMS } from '../domain/timestamp.ts';
import { exactDigits } from './exact-json.ts';
import { quote, type Rejection } from './rejection.ts';

// Clocks of senders run ahead; more than this is a mistake that would sit above the newest record of every query.
const MAX_AHEAD_MICROS = 3_600_000_000;
const MICROS_PER_DAY = 86_400_000_000;

const ALLOWED = `Allowed: ${TIMESTAMP_FORMS}, or an integer of 10, 13, 16 or 19 digits: seconds, milliseconds, microseconds or nanoseconds since 1970.`;

/** The record's time in Unix microseconds. A record without one has the time of its arrival. */
export function readRecordTimestamp(
  value: unknown,
  nowMicros: number,
  retentionDays: number,
): number | Rejection {
  if (value === undefined || value === null || value === '') return nowMicros;
  const micros = toMicros(value);
  if (micros === undefined) {
    return {
      code: 'invalid_timestamp',
      message: `The timestamp ${describe(value)} cannot be read. ${ALLOWED}`,
    };
  }
  if (micros > nowMicros + MAX_AHEAD_MICROS) {
    return {
      code: 'in_the_future',
      message: `The timestamp ${format(micros)} is more than 1 hour in the future; it is ${format(nowMicros)} here.`,
    };
  }
  if (micros < nowMicros - retentionDays * MICROS_PER_DAY) {
    return {
      code: 'past_retention',
      message: `The timestamp ${format(micros)} is older than the ${retentionDays} days that records are kept.`,
    };
  }
  return micros;
}

function toMicros(value: unknown): number | undefined {
  if (typeof value === 'number') return integerToMicros(value);
  if (typeof value !== 'string') return undefined;
  const digits = exactDigits(value);
  if (digits !== undefined) return digitsToMicros(digits);
  const parsed = parseTimestamp(value);
  return parsed === undefined ? digitsToMicros(value) : Number(parsed);
}

// The unit is told by the number of digits: until the year 2286 the four ranges do not overlap.
function integerToMicros(integer: number): number | undefined {
  if (!Number.isInteger(integer)) return undefined;
  if (integer >= 1e15 && integer < 1e16) return integer;
  if (integer >= 1e12 && integer < 1e13) return integer * 1000;
  if (integer >= 1e9 && integer < 1e10) return integer * 1_000_000;
  // A nanosecond count that a double holds is a round one; dividing it would not be exact, cutting digits is.
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
  const digits = exactDigits(value);
  if (digits !== undefined) return digits.length > 40 ? `${digits.slice(0, 40)}…` : digits;
  if (typeof value === 'string') return quote(value);
  if (typeof value === 'object') return Array.isArray(value) ? '(an array)' : '(an object)';
  return String(value);
}

function format(micros: number): string {
  return formatTimestamp(BigInt(micros));
}
