// Finds the newest timestamp of a table. The last hour nearly always has it and lies in few blocks, so both stores look
// there first and read everything only if that hour is empty.
import { MICROS_PER_SECOND } from '../system/clock.ts';

const MICROS_PER_HOUR = 3600n * MICROS_PER_SECOND;

/** `queryFrom` returns the newest timestamp between `start` and `notAfter`. All are Unix microseconds. */
export async function findNewest(
  notAfter: bigint,
  queryFrom: (start: bigint) => Promise<bigint | undefined>,
): Promise<bigint | undefined> {
  return (await queryFrom(notAfter - MICROS_PER_HOUR)) ?? (await queryFrom(0n));
}
