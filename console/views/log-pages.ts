// Pages of log records from logs.all, newest first. The next page is requested by its upper time bound, because logs.all has no
// cursor. If all records of a page have the same timestamp, other records of this timestamp may be missing.
import type { QueryResult, Row } from '../api/client.ts';
import { formatCount, microsToIso } from '../format.ts';
import { readMicros, toRowKey } from '../logs/record-fields.ts';

/** The maximum number of rows that the endpoint returns. If a page has this many, there can be more. */
const PAGE_ROWS = 100;

export interface LogPage {
  readonly rows: readonly Row[];
  /** There can be older records. */
  readonly isFull: boolean;
}

export function toLogPage({ rows, clipped }: QueryResult): LogPage {
  return { rows, isFull: rows.length >= PAGE_ROWS || clipped.includes('byte-limit') };
}

/** The upper time bound of the next page (the parameter iso_timestamp_end). */
export interface PageEnd {
  /** Unix microseconds, inclusive: records that are loaded already are returned again and skipped by id. */
  readonly micros: number;
  /** The page before had no room for all records of this timestamp, and the next page skips the others; undefined: none. */
  readonly skippedMicros: number | undefined;
}

/** Returns undefined if there are no older records. */
export function findNextEnd({ rows, isFull }: LogPage): PageEnd | undefined {
  const [first, last] = [rows[0], rows.at(-1)];
  if (!isFull || first === undefined || last === undefined) return undefined;
  const micros = readMicros(last);
  // If all records have the same timestamp, a next page up to this timestamp would contain the same records again.
  return readMicros(first) === micros
    ? { micros: micros - 1, skippedMicros: micros }
    : { micros, skippedMicros: undefined };
}

/**
 * Returns the loaded records that are older than the newest page, so that a refresh keeps them. If the page is full and does not
 * contain the newest loaded record, there can be a gap between the two; then it returns none.
 */
export function keepOlder(page: LogPage, loaded: readonly Row[]): readonly Row[] {
  const inPage = new Set(page.rows.map(toRowKey));
  const [newestLoaded] = loaded;
  const oldestInPage = page.rows.at(-1);
  if (newestLoaded === undefined || oldestInPage === undefined) return [];
  if (page.isFull && !inPage.has(toRowKey(newestLoaded))) return [];
  return loaded.filter(row => readMicros(row) <= readMicros(oldestInPage) && !inPage.has(toRowKey(row)));
}

export function describeSkipped(skipped: readonly number[]): string {
  const [first] = skipped;
  if (first === undefined) return '';
  const others = skipped.length - 1;
  const timestamps = `${microsToIso(first)}${others === 0 ? '' : ` and ${formatCount(others)} more`}`;
  return `Records may be missing: a page has no room for all records with one timestamp (${timestamps}).`;
}
