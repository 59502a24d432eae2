// Finds the newest timestamp in a table, up to and including `notAfter`. Nearly always it is in the hour before `notAfter`, and
// the records of one hour are in few blocks. So both stores search that hour first, and all records since 1970 if it has none.
import { MICROS_PER_SECOND } from '../system/clock.ts';

const MICROS_PER_HOUR = 3600n * MICROS_PER_SECOND;

/** `queryFrom` returns the newest timestamp from `start` to `notAfter`, both inclusive. All are Unix microseconds. */
export async function findNewestTimestamp(
  notAfter: bigint,
  queryFrom: (start: bigint) => Promise<bigint | undefined>,
): Promise<bigint | undefined> {
  return (await queryFrom(notAfter - MICROS_PER_HOUR)) ?? (await queryFrom(0n));
}
