// Parses and formats timestamps: Unix microseconds, UTC, in a bigint, because a number is exact only until 2255. The timestamp of
// a log record is at most an hour in the future, so LogRecord has it as a number.

const RFC_3339 =
  /^(\d{4})-(\d{2})-(\d{2})(?:[Tt ](\d{2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?([Zz]|[+-]\d{2}:\d{2})?)?$/;

export const TIMESTAMP_FORMS =
  'an RFC 3339 date-time such as 2026-11-14T09:30:00.123456+02:00 (without an offset it is UTC) or a date such as 2026-11-14';

/**
 * Parses a date, or an RFC 3339 date-time whose seconds have at most 9 decimal places. The offset may be missing: then it is UTC.
 * Drops everything below a microsecond. Returns undefined if the text is neither.
 */
export function parseTimestamp(text: string): bigint | undefined {
  const match = RFC_3339.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour = '00', minute = '00', second = '00', fraction = '', offset = 'Z'] = match;
  const date = new Date(0);
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCMonth() !== Number(month) - 1 || date.getUTCDate() !== Number(day)) return undefined;
  // RFC 3339 allows second 60, a leap second. It becomes the first second of the next minute.
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined;
  const offsetMinutes = parseOffset(offset);
  if (offsetMinutes === undefined) return undefined;
  const seconds =
    date.getTime() / 1000 + Number(hour) * 3600 + (Number(minute) - offsetMinutes) * 60 + Number(second);
  return BigInt(seconds) * 1_000_000n + BigInt(fraction.slice(0, 6).padEnd(6, '0'));
}

/** Returns the offset from UTC in minutes. */
function parseOffset(offset: string): number | undefined {
  if (offset === 'Z' || offset === 'z') return 0;
  const hours = Number(offset.slice(1, 3));
  const minutes = Number(offset.slice(4, 6));
  if (hours > 23 || minutes > 59) return undefined;
  return (offset[0] === '-' ? -1 : 1) * (hours * 60 + minutes);
}

/** Returns `YYYY-MM-DDTHH:MM:SS[.ffffff]Z`, without the fraction if it is zero. */
export function formatTimestamp(micros: bigint): string {
  const fraction = ((micros % 1_000_000n) + 1_000_000n) % 1_000_000n;
  const seconds = new Date(Number((micros - fraction) / 1000n)).toISOString().slice(0, -'.000Z'.length);
  return fraction === 0n ? `${seconds}Z` : `${seconds}.${String(fraction).padStart(6, '0')}Z`;
}
