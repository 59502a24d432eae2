// Creates the ids of records that were sent without one: UUIDv7 (RFC 9562), increasing within a body.
import { randomUUID } from 'node:crypto';

/** Three hex digits before the variant and three after it, so the counter has 24 bits. */
const COUNTER_HEX_DIGITS = 6;
/** The counter starts in the lower half of its range. The upper half has more numbers than the largest body has records. */
const COUNTER_START_LIMIT = 2 ** 23;

/**
 * Returns a function that creates the ids for one body: 48 bits of Unix milliseconds, a counter, then 48 random bits. All ids of
 * the body have its time of arrival, so only the counter decides their order. Two bodies differ in the start of the counter and
 * in the random bits.
 */
export function createIdSequence(nowMicros: number): () => string {
  const millis = Math.floor(nowMicros / 1000)
    .toString(16)
    .padStart(12, '0');
  const prefix = `${millis.slice(0, 8)}-${millis.slice(8)}-7`;
  let counter = Number.parseInt(randomUUID().slice(0, 8), 16) % COUNTER_START_LIMIT;
  return () => {
    const digits = (counter++).toString(16).padStart(COUNTER_HEX_DIGITS, '0');
    // 8 is the variant. randomUUID() is fast because it generates random bytes in bulk.
    return `${prefix}${digits.slice(0, 3)}-8${digits.slice(3)}-${randomUUID().slice(24)}`;
  };
}
