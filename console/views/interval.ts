// The parameter `interval` of an endpoint that returns one row per time bucket of a window that ends now, as the catalog defines it.
// The page chooses the interval that fits its time range.
import { type Choice, type Endpoint, readChoices } from '../api/catalog.ts';
import { listBucketStarts } from '../chart/chart-data.ts';
import type { Action } from '../components/messages.ts';
import { formatPeriod } from '../format.ts';
import { ALL, isOpenEnded, toSpan } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';

export interface Interval {
  readonly name: string;
  readonly windowSeconds: number;
  readonly bucketSeconds: number;
  /** Undefined: the time range ends before now, so its values do not change. */
  readonly refreshSeconds: number | undefined;
  /** The settings of the page, which have its time range. */
  readonly settings: UrlState['settings'];
  /** What the time range asks for and the endpoint does not have; empty: nothing. */
  readonly limit: string;
}

/** The interval with the shortest buckets that reaches back to the start of the range; the longest one if none does. */
export function chooseInterval(endpoint: Endpoint, settings: UrlState['settings']): Interval {
  const all = readChoices(endpoint, 'interval').all.map(toWindow);
  const span = toSpan(settings);
  const neededSeconds = Math.floor((Date.now() - span.startMs) / 1000);
  const longest = all.reduce((best, each) => (each.windowSeconds > best.windowSeconds ? each : best));
  const chosen = all
    .filter(({ windowSeconds }) => windowSeconds >= neededSeconds)
    .reduce((best, each) => (each.bucketSeconds < best.bucketSeconds ? each : best), longest);
  const finest = all.reduce((best, each) => (each.bucketSeconds < best.bucketSeconds ? each : best));
  const tooOld = neededSeconds > longest.windowSeconds;
  const tooShort = (span.endMs - span.startMs) / 1000 < 2 * chosen.bucketSeconds;
  const limits = [
    tooOld ? `This view has the last ${formatPeriod(longest.windowSeconds)}.` : '',
    tooShort && chosen !== finest
      ? `Each bucket is a whole ${formatPeriod(chosen.bucketSeconds)}; shorter ones exist for the last ${formatPeriod(finest.windowSeconds)}.`
      : '',
  ];
  const refreshSeconds = isOpenEnded(settings) ? toRefreshSeconds(chosen.windowSeconds) : undefined;
  return { ...chosen, settings, refreshSeconds, limit: limits.filter(text => text !== '').join(' ') };
}

/** A part of the bucket that starts at this time, in Unix seconds, is in the range. `ranAt` is the time of the query. */
export function isInRange({ settings, bucketSeconds }: Interval, start: number, ranAt: number): boolean {
  const { startMs, endMs } = toSpan(settings, ranAt);
  const isBeforeEnd = start * 1000 < endMs || isOpenEnded(settings);
  return isBeforeEnd && (start + bucketSeconds) * 1000 > startMs;
}

/** The starts of the buckets of the range, in Unix seconds, including those without a row. */
export function listStarts(interval: Interval, ranAt: number, rowStarts: readonly number[]): number[] {
  return listBucketStarts(interval, ranAt, rowStarts).filter(start => isInRange(interval, start, ranAt));
}

/** Offers all records if the range is shorter. */
export function createWiderAction(
  settings: UrlState['settings'],
  updateSettings: (settings: UrlState['settings']) => void,
): Action | undefined {
  if (settings['range'] === ALL) return undefined;
  return { label: 'Show all', run: () => updateSettings({ range: ALL, start: '', end: '' }) };
}

function toWindow({ name, values }: Choice) {
  const [windowSeconds, bucketSeconds] = [values['window_seconds'], values['bucket_seconds']].map(Number);
  return { name, windowSeconds: windowSeconds ?? 0, bucketSeconds: bucketSeconds ?? 0 };
}

/** Short windows change faster: refresh every 10 s for 5 minutes, 1 min for an hour, 5 min for a day or more. */
function toRefreshSeconds(windowSeconds: number): number {
  return Math.min(Math.max(windowSeconds / 30, 10), windowSeconds <= 3600 ? 60 : 300);
}
