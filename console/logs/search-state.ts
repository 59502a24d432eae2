// The settings of the logs view in the URL: the filters of a search, the page, and the record that a link leads to.
import type { Row } from '../api/client.ts';
import { microsToIso } from '../format.ts';
import { type Bounds, CUSTOM, toBounds } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import type { Page } from './live-tail.ts';
import { readMicros } from './record-fields.ts';

export type Settings = UrlState['settings'];

/**
 * Clears the settings that select one page or one record, because they do not apply to another search. A cursor is valid only with
 * the exact bounds (`from`, `until`) of the page before, so a range that is relative to now has fixed bounds on older pages.
 */
export const FIRST_PAGE: Settings = { cursor: '', offset: '', from: '', until: '', record: '', at: '' };

/** The parameters that all endpoints of the explore pack share. */
export function toFilters({ project, settings }: UrlState): Record<string, string> {
  const { kind = '', query = '', tier = '' } = settings;
  return { project, kind, query, project_tier: tier, ...toBounds(settings) };
}

/** What a saved search keeps: not the time range, the page or the tier. */
export function toSavedSettings(settings: Settings): Settings {
  const { kind = '', query = '', columns = '', facets = '', tab = '' } = settings;
  return { kind, query, columns, facets, tab };
}

/** States with the same key have the same histogram. */
export function toFilterKey({ project, settings }: UrlState): string {
  const { kind, query, range, start, end, tier } = settings;
  return JSON.stringify([project, kind, query, range, start, end, tier]);
}

/** States with the same key show the same list, which then keeps its open rows. */
export function toListKey(state: UrlState): string {
  const { cursor, until, record, columns } = state.settings;
  return JSON.stringify([toFilterKey(state), cursor, until, record, columns]);
}

/**
 * The newest page, which grows while the live tail is on. A page with `until` but without a cursor was the newest page before the
 * user left it and returned to it (`toReturnPage`).
 */
export function isNewestPage({ cursor = '', until = '' }: Settings): boolean {
  return cursor === '' && until === '';
}

export function readOffset({ offset = '' }: Settings): number {
  return Number(offset) || 0;
}

/** The bounds of the current page. */
export function toPageBounds(settings: Settings): Bounds {
  const { from = '', until = '' } = settings;
  return isNewestPage(settings)
    ? toBounds(settings)
    : { iso_timestamp_start: from, iso_timestamp_end: until };
}

/** The page after `page`, which was loaded with these bounds. */
export function toOlderPage(settings: Settings, page: Page, bounds: Bounds): Settings {
  const offset = String(readOffset(settings) + page.rows.length);
  return { ...FIRST_PAGE, ...toFixedBounds(bounds), cursor: page.nextCursor ?? '', offset };
}

/** The settings that return to this page. The newest page gets an end, because newer records may arrive meanwhile. */
export function toReturnPage(settings: Settings, page: Page, bounds: Bounds): Settings {
  const { cursor = '', offset = '' } = settings;
  const [newest] = page.rows;
  const fixed = { ...FIRST_PAGE, ...toFixedBounds(bounds), cursor, offset };
  return isNewestPage(settings) && newest !== undefined
    ? { ...fixed, until: microsToIso(readMicros(newest)) }
    : fixed;
}

function toFixedBounds({ iso_timestamp_start: from, iso_timestamp_end: until }: Bounds): Settings {
  return { from, until };
}

export function toRecordSettings(record: Row): Settings {
  return { ...FIRST_PAGE, record: String(record['id']), at: String(record['timestamp']) };
}

const AROUND_MICROS = 3_600_000_000;

/** The hour before a record and the hour after it. */
export function toRangeAround(record: Row): Settings {
  const at = readMicros(record);
  const [start, end] = [at - AROUND_MICROS, at + AROUND_MICROS].map(microsToIso);
  return { range: CUSTOM, start: start ?? '', end: end ?? '' };
}
