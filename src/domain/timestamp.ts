// Parses and formats timestamps: Unix microseconds, UTC, in a bigint, because a number is exact only until 2255. The timestamp of
// a log record is at most an hour in the future, so LogRecord has it as a number.

// ISO 8601 in its extended and basic form. A date can have a time to the hour, minute or second.
const EXTENDED = dateTime('-', ':');
const BASIC = dateTime('', '');
/** ISO 8601 has no basic form of a month. */
const MONTH = /^(\d{4})-(\d{2})$/;

function dateTime(dash: string, colon: string): RegExp {
  const time = `(\\d{2})(?:${colon}(\\d{2})(?:${colon}(\\d{2})(?:[.,](\\d{1,9}))?)?)?`;
  const offset = '([Zz]|[+-]\\d{2}(?::?\\d{2})?)';
  return new RegExp(`^(\\d{4})${dash}(\\d{2})${dash}(\\d{2})(?:[Tt ]${time}${offset}?)?$`);
}

export const TIMESTAMP_FORMS =
  'an ISO 8601 date-time such as 2026-11-14T09:30:00.123456+02:00 (without an offset it is UTC), a calendar date such as 2026-11-14 or a month such as 2026-11';

/**
 * Parses an ISO 8601 month, calendar date or date-time: its first moment. Seconds have at most 9 decimal places; everything below a
 * microsecond is dropped. Without an offset it is UTC. Returns undefined for any other text, such as a week date or an ordinal date.
 */
export function parseTimestamp(text: string): bigint | undefined {
  const match = EXTENDED.exec(text) ?? BASIC.exec(text) ?? MONTH.exec(text);
  if (match === null) return undefined;
  const [, year, month, day = '01', hour = '00', minute = '00', second = '00', fraction = '', offset] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  const timeOfDay = Number(hour) * 3600 + Number(minute) * 60 + Number(second);
  // RFC 3339 allows second 60, a leap second. It becomes the first second of the next minute.
  const isValid = Number(hour) < 24 && Number(minute) < 60 && Number(second) <= 60;
  // 24:00:00 is the next midnight.
  if (!isValid && !(hour === '24' && timeOfDay === 86_400 && Number(fraction) === 0)) return undefined;
  const offsetMinutes = parseOffset(offset);
  if (offsetMinutes === undefined) return undefined;
  const seconds = date.getTime() / 1000 + timeOfDay - offsetMinutes * 60;
  return BigInt(seconds) * 1_000_000n + BigInt(fraction.slice(0, 6).padEnd(6, '0'));
}

/** Returns the offset from UTC in minutes. */
function parseOffset(offset = 'Z'): number | undefined {
  if (offset === 'Z' || offset === 'z') return 0;
  const hours = Number(offset.slice(1, 3));
  const minutes = Number(offset.slice(3).replace(':', ''));
  if (hours > 23 || minutes > 59) return undefined;
  return (offset[0] === '-' ? -1 : 1) * (hours * 60 + minutes);
}

/** Returns `YYYY-MM-DDTHH:MM:SS[.ffffff]Z`, without the fraction if it is zero. */
export function formatTimestamp(micros: bigint): string {
  const fraction = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = new Date(Number((micros - fraction) / 1000n)).toISOString().slice(0, -'.000Z'.length);
  return fraction === 0n ? `${seconds}Z` : `${seconds}.${String(fraction).padStart(6, '0')}Z`;
}
