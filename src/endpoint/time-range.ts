// The time range of a request, for an endpoint whose endpoint.yaml has the key `range`, and the size of its buckets. Its start is the
// latest of the requested start, the start of the retention period and the start of the window.
import type { BoundValues, TimeRange } from '../store/store.ts';
import { MICROS_PER_DAY, MICROS_PER_SECOND } from '../system/clock.ts';
import type { EndpointDefinition } from './definition.ts';

/** Undefined without the key `range`. */
export function findTimeRange(
  { range }: EndpointDefinition,
  values: BoundValues,
  now: bigint,
): TimeRange | undefined {
  if (range === undefined) return undefined;
  const number = (name: string | undefined) => BigInt(Number(values[name ?? '']?.value ?? 0));
  const starts = [toMicros(values, range.start)];
  if (range.days !== undefined) starts.push(now - number(range.days) * MICROS_PER_DAY);
  if (range.window !== undefined)
    starts.push(now - (number(range.window) + number(range.bucket)) * MICROS_PER_SECOND);
  const start = starts.reduce((latest, each) =>
    latest === undefined || (each !== undefined && each > latest) ? each : latest,
  );
  return { start, end: toMicros(values, range.end) };
}

function toMicros(values: BoundValues, name: string | undefined): bigint | undefined {
  const bound = values[name ?? ''];
  return bound?.type === 'timestamp' ? (bound.value ?? undefined) : undefined;
}

/**
 * A range has at most this many buckets. Each of BUCKET_STEPS is at most 2.5 times the one before, so a range has at least 48
 * buckets, unless it is shorter than 48 µs.
 */
const MAX_BUCKETS = 120n;

const MINUTE = 60n * MICROS_PER_SECOND;
const HOUR = 60n * MINUTE;

/** The sizes that a bucket can have, in microseconds. */
const BUCKET_STEPS: readonly bigint[] = [
  ...[1n, 10n, 100n, 1_000n, 10_000n, 100_000n].flatMap(unit => [unit, 2n * unit, 5n * unit]),
  ...[1n, 2n, 5n, 10n, 15n, 30n].map(count => count * MICROS_PER_SECOND),
  ...[1n, 2n, 5n, 10n, 15n, 30n].map(count => count * MINUTE),
  ...[1n, 2n, 3n, 6n, 12n].map(count => count * HOUR),
  ...[1n, 10n, 100n, 1_000n, 10_000n].flatMap(unit =>
    [unit, 2n * unit, 5n * unit].map(count => count * MICROS_PER_DAY),
  ),
];
const LARGEST_STEP = 100_000n * MICROS_PER_DAY;

/** The smallest step with which the range touches at most 120 buckets. Buckets start at multiples of their size. */
export function chooseBucket(start: bigint, end: bigint): bigint {
  const first = start + 1n; // the start is exclusive
  return BUCKET_STEPS.find(step => end / step - first / step < MAX_BUCKETS) ?? LARGEST_STEP;
}
