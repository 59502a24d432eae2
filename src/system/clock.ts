// Wall-clock time. Everything that needs it gets a Clock, so that tests can set it. Waiting is in timer.ts.

/** The current time in Unix microseconds, UTC. */
export type Clock = () => bigint;

export const systemClock: Clock = () => BigInt(Date.now()) * 1000n;

export const MICROS_PER_SECOND = 1_000_000n;
export const MICROS_PER_DAY = 86_400n * MICROS_PER_SECOND;
