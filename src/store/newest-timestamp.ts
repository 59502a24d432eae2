// Finds the newest timestamp of a table that is not after `notAfter`. Nearly always it is in the hour before, which is in few
// blocks. So both stores search that hour first, and all records since 1970 only if the hour is empty.
import { MICROS_PER_SECOND } from '../system/clock.ts';

const MICROS_PER_HOUR = 3600n * MICROS_PER_SECOND;

/** `queryFrom` returns the newest timestamp between `start` and `notAfter`. All are Unix microseconds. */
export async function findNewestTimestamp(
  notAfter: bigint,
  queryFrom: (start: bigint) => Promise<bigint | undefined>,
): Promise<bigint | undefined> {
  return (await queryFrom(notAfter - MICROS_PER_HOUR)) ?? (await queryFrom(0n));
}
