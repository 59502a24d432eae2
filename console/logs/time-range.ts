// The time range of the logs view, as settings of the URL: relative to now, everything within the retention, or custom.
import type { Choices } from '../api/catalog.ts';
import type { Option } from '../components/controls.ts';
import { formatPeriod, formatShortDuration } from '../format.ts';
import type { UrlState } from '../url-state.ts';

type Settings = UrlState['settings'];

interface Range extends Option {
  /** The length of a range that ends now; undefined for other ranges. */
  readonly seconds?: number;
}

export const ALL = 'all';
export const CUSTOM = 'custom';

export const RANGES: readonly Range[] = [
  createRelativeRange('15min', 900),
  createRelativeRange('1hr', 3600),
  createRelativeRange('1day', 86_400),
  createRelativeRange('7day', 604_800),
  { value: ALL, label: 'All', title: 'All records within the retention of the tier' },
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

/** The range includes now, so new records can appear in it. */
export function isOpenEnded(settings: Settings): boolean {
  const end = Date.parse(toBounds(settings).iso_timestamp_end);
  return Number.isNaN(end) || end > Date.now();
}

export function findRetentionDays(tiers: Choices, { tier }: Settings): number {
  const { values } = tiers.all.find(({ name }) => name === tier) ?? tiers.default;
  return Number(values['retention_days']);
}

/**
 * The retention hides a part of the range. A range that is as long as the retention does not count: the server computes the limit
 * a moment after the page computed the start of the range, so only that moment is hidden.
 */
export function isClippedByRetention(
  clipped: readonly string[],
  settings: Settings,
  tiers: Choices,
): boolean {
  const seconds = findRange(settings)?.seconds ?? Number.POSITIVE_INFINITY;
  return clipped.includes('retention') && seconds > findRetentionDays(tiers, settings) * 86_400;
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
