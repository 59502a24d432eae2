// Moments in the visitor's time zone, and in UTC beside it.

const format = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(undefined, options);
const HOURS = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
const SECONDS = { ...HOURS, second: '2-digit' } as const;
const DAY = { day: 'numeric', month: 'short' } as const;

const clock = format(HOURS);
const clockSeconds = format(SECONDS);
const clockMillis = format({ ...SECONDS, fractionalSecondDigits: 3 });
const day = format(DAY);
const dayClock = format({ weekday: 'short', ...DAY, ...HOURS });
const full = format({ ...DAY, year: 'numeric', ...SECONDS });

export const timeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

export const formatClock = (ms: number): string => clock.format(ms);
export const formatClockSeconds = (ms: number): string => clockSeconds.format(ms);
export const formatClockMillis = (ms: number): string => clockMillis.format(ms);
export const formatDay = (ms: number): string => day.format(ms);
export const formatFull = (ms: number): string => full.format(ms);

/** A bucket's start, as finely as the bucket is wide. */
export function formatBucket(ms: number, bucketSeconds: number): string {
  return bucketSeconds < 60 ? clockSeconds.format(ms) : dayClock.format(ms);
}

/** `2026-11-14 12:34:56 UTC`, without a fraction that is zero. */
export function formatUtc(ms: number): string {
  return `${new Date(ms)
    .toISOString()
    .replace('T', ' ')
    .replace(/(\.000)?Z$/, '')} UTC`;
}

/** Unix microseconds to ISO 8601 with all six decimals. */
export function microsToIso(micros: number): string {
  const fraction = String(Math.trunc(micros) % 1_000_000).padStart(6, '0');
  return `${new Date(Math.floor(micros / 1000)).toISOString().slice(0, 19)}.${fraction}Z`;
}

/** How long ago, in one unit: `now`, `12 s`, `4 min`, `3 h`, `2 d`. */
export function formatAgo(seconds: number): string {
  if (seconds < 1) return 'under 1 s';
  if (seconds < 100) return `${Math.floor(seconds)} s`;
  if (seconds < 6000) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}
