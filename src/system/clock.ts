// The one source of time. Everything that asks what time it is is given a Clock, so tests can set it.

/** The current time in Unix microseconds, UTC. */
export type Clock = () => bigint;

export const systemClock: Clock = () => BigInt(Date.now()) * 1000n;

export const MICROS_PER_SECOND = 1_000_000n;
export const MICROS_PER_DAY = 86_400n * MICROS_PER_SECOND;
