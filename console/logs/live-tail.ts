// Merges new records into the list. The live tail loads only the records after the newest one that it knows, with an overlap,
// because records can arrive late.
import type { QueryResult, Row } from '../api/query-result.ts';
import { readMicros, toRowKey } from './record-fields.ts';

const OVERLAP_MICROS = 60_000_000;

/**
 * The start of the next request for new records, in Unix microseconds: before the newest record, and before the last request,
 * because the newest record can have a timestamp in the future.
 */
export function findTailStart(shown: readonly Row[], ranAtMs: number): number {
  const [newest] = shown;
  const ranAtMicros = ranAtMs * 1000;
  return (newest === undefined ? ranAtMicros : Math.min(readMicros(newest), ranAtMicros)) - OVERLAP_MICROS;
}

export interface Page {
  /** Newest first. */
  readonly rows: readonly Row[];
  /** The cursor of older records; undefined if there are none. */
  readonly nextCursor: string | undefined;
}

/** Returns undefined if there can be records between the new ones and the shown ones. */
export function mergeNewer(shown: Page, { rows, nextCursor }: QueryResult): Page | undefined {
  // The oldest of the new records is already shown.
  const overlaps = countNew(shown.rows, rows.slice(-1)) === 0;
  if (nextCursor !== undefined && !overlaps) return undefined;
  const keys = new Set(rows.map(toRowKey));
  const merged = [...rows, ...shown.rows.filter(row => !keys.has(toRowKey(row)))];
  return { rows: merged.sort(compareRecords), nextCursor: shown.nextCursor };
}

/** The order of the API: newest first, equal timestamps by id. */
function compareRecords(a: Row, b: Row): number {
  const difference = readMicros(b) - readMicros(a);
  if (difference !== 0) return difference;
  return String(a['id']) < String(b['id']) ? -1 : 1;
}

/** The number of rows that are not shown yet. */
export function countNew(shown: readonly Row[], rows: readonly Row[]): number {
  const keys = new Set(shown.map(toRowKey));
  return rows.filter(row => !keys.has(toRowKey(row))).length;
}
