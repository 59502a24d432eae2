// Formats numbers, durations and times for people. Times are in the user's time zone unless the name says UTC or ISO.

const integer = new Intl.NumberFormat();
const compact = new Intl.NumberFormat(undefined, { notation: 'compact', maximumFractionDigits: 1 });
const decimal = new Intl.NumberFormat(undefined, { maximumFractionDigits: 3 });
const percent = new Intl.NumberFormat(undefined, { style: 'percent', maximumFractionDigits: 1 });
const threeDigits = new Intl.NumberFormat(undefined, { maximumSignificantDigits: 3 });

export const formatCount = (value: number): string => integer.format(value);

export const formatRecordCount = (value: number): string =>
  `${formatCount(value)} ${value === 1 ? 'record' : 'records'}`;

/** For axes: 1.2K. */
export const formatCompact = (value: number): string => compact.format(value);

/** For tables: at most three decimals. The heading has the unit. */
export const formatDecimal = (value: number): string => decimal.format(value);

/** 0.05 becomes 5%. */
export const formatPercent = (fraction: number): string => percent.format(fraction);

/** Three significant digits, in ms, s or min: 0.4 ms, 120 ms, 1.25 s, 2.1 min. */
export function formatMilliseconds(ms: number): string {
  if (Math.abs(ms) < 1000) return `${threeDigits.format(ms)} ms`;
  if (Math.abs(ms) < 60_000) return `${threeDigits.format(ms / 1000)} s`;
  return `${threeDigits.format(ms / 60_000)} min`;
}

const UNITS = [
  ['day', 86_400],
  ['hour', 3600],
  ['minute', 60],
] as const;

/** A whole number of the largest unit that divides the seconds: `7 days`, `1 hour`, `15 minutes`. */
export function formatDuration(seconds: number): string {
  const [unit, size] = UNITS.find(([, unitSeconds]) => seconds % unitSeconds === 0) ?? ['second', 1];
  const count = seconds / size;
  return `${formatCount(count)} ${unit}${count === 1 ? '' : 's'}`;
}

/** A duration after "the last" or "per": `hour`, `7 days`. */
export function formatPeriod(seconds: number): string {
  return formatDuration(seconds).replace(/^1 /, '');
}

/** A duration for a button: `15 min`. */
export function formatShortDuration(seconds: number): string {
  return formatDuration(seconds).replace(/minutes?/, 'min');
}

/** Elapsed time in one unit: `less than 1 s`, `12 s`, `4 min`, `3 h`, `2 d`. */
export function formatElapsed(seconds: number): string {
  if (seconds < 1) return 'less than 1 s';
  if (seconds < 100) return `${Math.floor(seconds)} s`;
  if (seconds < 6000) return `${Math.floor(seconds / 60)} min`;
  if (seconds < 172_800) return `${Math.floor(seconds / 3600)} h`;
  return `${Math.floor(seconds / 86_400)} d`;
}

const dateFormat = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(undefined, options);
const TIME = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' } as const;
const TIME_SECONDS = { ...TIME, second: '2-digit' } as const;
const DAY = { day: 'numeric', month: 'short' } as const;

const time = dateFormat(TIME);
const timeSeconds = dateFormat(TIME_SECONDS);
const timeMillis = dateFormat({ ...TIME_SECONDS, fractionalSecondDigits: 3 });
const day = dateFormat(DAY);
const weekdayTime = dateFormat({ weekday: 'short', ...DAY, ...TIME });
const dateTime = dateFormat({ ...DAY, year: 'numeric', ...TIME_SECONDS });

export const timeZone = new Intl.DateTimeFormat().resolvedOptions().timeZone;

export const formatTime = (ms: number): string => time.format(ms);
export const formatTimeSeconds = (ms: number): string => timeSeconds.format(ms);
export const formatTimeMillis = (ms: number): string => timeMillis.format(ms);
export const formatDay = (ms: number): string => day.format(ms);
export const formatDateTime = (ms: number): string => dateTime.format(ms);

/** The start of a bucket: with seconds if buckets are shorter than a minute, otherwise with the day. */
export function formatBucketStart(ms: number, bucketSeconds: number): string {
  return bucketSeconds < 60 ? timeSeconds.format(ms) : weekdayTime.format(ms);
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
