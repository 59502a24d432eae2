// Finds the newest timestamp of a table. Nearly always it is in the hour before `notAfter`, and the records of one hour are in few
// blocks. So both stores search that hour first, and all records since 1970 if it has none.
import { MICROS_PER_SECOND } from '../system/clock.ts';
import type { BoundValue, QueryOptions, Store } from './store.ts';

const MICROS_PER_HOUR = 3600n * MICROS_PER_SECOND;

/**
 * Implements Store.newestTimestamp. `sql` selects the newest timestamp, or null, from `start` to `end`, both inclusive, of `project` or,
 * if that is null, of all projects.
 */
export async function findNewestTimestamp(
  query: Store['query'],
  sql: string,
  notAfter: bigint,
  project: string | undefined,
  options: QueryOptions = {},
): Promise<bigint | undefined> {
  const columns = [{ name: 'newest', type: 'unix_microseconds' }] as const;
  const timestamp = (value: bigint): BoundValue => ({ type: 'timestamp', value });
  for (const start of [notAfter - MICROS_PER_HOUR, 0n]) {
    const { rows } = await query(
      { sql, columns, maxRows: 1 },
      {
        start: timestamp(start),
        end: timestamp(notAfter),
        project: { type: 'text', value: project ?? null },
      },
      { ...options, range: { start, end: notAfter } },
    );
    if (typeof rows[0]?.[0] === 'bigint') return rows[0][0];
  }
  return undefined;
}
