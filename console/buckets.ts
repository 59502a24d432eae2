// The buckets of a window, also those that the answer has no row for: empty time is part of the picture.

export interface Window {
  readonly windowSeconds: number;
  readonly bucketSeconds: number;
}

/**
 * The starts of all buckets, Unix seconds, from the one that holds now − window to the one that holds now. The server's
 * now is known to the second only, so rows that lie beyond widen the range.
 */
export function bucketStarts(
  { windowSeconds, bucketSeconds }: Window,
  askedAtMs: number,
  rowStarts: readonly number[],
): number[] {
  const floor = (seconds: number) => Math.floor(seconds / bucketSeconds) * bucketSeconds;
  const now = askedAtMs / 1000;
  const first = Math.min(floor(now - windowSeconds), rowStarts[0] ?? Number.POSITIVE_INFINITY);
  const last = Math.max(floor(now), rowStarts.at(-1) ?? 0);
  const starts: number[] = [];
  for (let start = first; start <= last; start += bucketSeconds) starts.push(start);
  return starts;
}
