// The time range of the page, as settings of the URL: relative to now, all that is stored, or between two times. All views share it.
import type { TimeRange } from './chart/chart-data.ts';
import { formatPeriod, formatShortDuration, microsToIso } from './format.ts';
import type { UrlState } from './url-state.ts';

type Settings = UrlState['settings'];

/** An option of a control. */
interface Range {
  readonly value: string;
  readonly label: string;
  readonly title: string;
  /** The length of a range that ends now; undefined for other ranges. */
  readonly seconds?: number;
}

export const ALL = 'all';
export const CUSTOM = 'custom';
export const DEFAULT_RANGE = '1hr';

export const RANGES: readonly Range[] = [
  createRelativeRange('5min', 300),
  createRelativeRange('15min', 900),
  createRelativeRange('1hr', 3600),
  createRelativeRange('1day', 86_400),
  createRelativeRange('7day', 604_800),
  { value: ALL, label: 'All', title: 'All that is stored' },
  { value: CUSTOM, label: 'Custom', title: 'A custom time range' },
];

function createRelativeRange(value: string, seconds: number): Range {
  return {
    value,
    label: formatShortDuration(seconds),
    title: `The last ${formatPeriod(seconds)}`,
    seconds,
  };
}

/** The settings of the range alone. An unknown range becomes the default. */
export function pickRange(settings: Settings): Settings {
  const { range = '', start = '', end = '' } = settings;
  if (range === CUSTOM) return { range, start, end };
  return { range: findRange(settings)?.value ?? DEFAULT_RANGE, start: '', end: '' };
}

export function findRange(settings: Settings): Range | undefined {
  return RANGES.find(({ value }) => value === settings['range']);
}

/** The bounds as parameters of the API. The start is exclusive, the end inclusive; an empty one is no bound. */
export interface Bounds {
  readonly iso_timestamp_start: string;
  readonly iso_timestamp_end: string;
}

export function toBounds(settings: Settings): Bounds {
  if (settings['range'] === CUSTOM)
    return { iso_timestamp_start: settings['start'] ?? '', iso_timestamp_end: settings['end'] ?? '' };
  const seconds = findRange(settings)?.seconds;
  const start = seconds === undefined ? '' : new Date(Date.now() - seconds * 1000).toISOString();
  return { iso_timestamp_start: start, iso_timestamp_end: '' };
}

/** From a start, inclusive, to an end, exclusive, in Unix milliseconds. */
export interface Span {
  readonly startMs: number;
  readonly endMs: number;
}

/** The range in time. Without a start, it starts at 0; without an end, it ends at `nowMs`. */
export function toSpan(settings: Settings, nowMs = Date.now()): Span {
  const { seconds } = findRange(settings) ?? {};
  if (seconds !== undefined) return { startMs: nowMs - seconds * 1000, endMs: nowMs };
  const { iso_timestamp_start: start, iso_timestamp_end: end } = toBounds(settings);
  return { startMs: parseBound(start) || 0, endMs: parseBound(end) || nowMs };
}

/** A range of a chart has bounds 1 µs before a bucket start (`zoomTo`). Date.parse truncates them to 1 ms before it. */
const parseBound = (iso: string): number => Date.parse(iso) + (/999Z$/.test(iso) ? 1 : 0);

/** The settings of a range that the user chose in a chart. */
export function zoomTo({ startMicros, endMicros }: TimeRange): Settings {
  // A TimeRange includes its start and excludes its end. The API does the opposite, so each bound is 1 µs earlier.
  return { range: CUSTOM, start: microsToIso(startMicros - 1), end: microsToIso(endMicros - 1) };
}

/** Three times the range around its middle, but not later than now. */
export function zoomOut(settings: Settings): Settings {
  const { startMs, endMs } = toSpan(settings);
  const length = endMs - startMs;
  const end = Math.min(endMs + length, Math.max(endMs, Date.now()));
  return zoomTo({ startMicros: (startMs - length) * 1000, endMicros: end * 1000 });
}

/** The range includes now, so new records can appear in it. */
export function isOpenEnded(settings: Settings): boolean {
  const end = Date.parse(toBounds(settings).iso_timestamp_end);
  return Number.isNaN(end) || end > Date.now();
}

/** Such as "in the last hour". */
export function describeRange(settings: Settings): string {
  const seconds = findRange(settings)?.seconds;
  return seconds === undefined ? 'in this time range' : `in the last ${formatPeriod(seconds)}`;
}

/** The value of a datetime-local input; empty if the time is invalid. */
export function toLocalInput(iso: string): string {
  // A range that was chosen in a chart has bounds 1 µs before a bucket start. Date.parse truncates them to 1 ms before it.
  const ms = Date.parse(iso) + 1;
  if (Number.isNaN(ms)) return '';
  const local = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return local.toISOString().slice(0, 19);
}

export function fromLocalInput(value: string): string {
  const ms = Date.parse(value); // in the user's time zone, because the value has no offset
  return Number.isNaN(ms) ? '' : new Date(ms).toISOString().replace('.000Z', 'Z');
}
