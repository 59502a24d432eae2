// Makes the ids of records that came without one.
import { randomUUID } from 'node:crypto';

/** A UUIDv7 (RFC 9562): 48 bits of Unix milliseconds, then 74 random bits, so that ids of one time lie close together. */
export function makeUuidV7(nowMicros: number): string {
  const millis = Math.floor(nowMicros / 1000)
    .toString(16)
    .padStart(12, '0');
  // A v4 UUID has its random bits and its variant where v7 has them, and Node draws them many at a time.
  return `${millis.slice(0, 8)}-${millis.slice(8)}-7${randomUUID().slice(15)}`;
}
