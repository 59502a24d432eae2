// The input of a chart: series of values at the same points in time.

export interface ChartSeries {
  readonly key: string;
  readonly label: string;
  /** A colour of style/theme.css, such as `chart-blue`. */
  readonly color: string;
  /** One value for each point in time; null is a gap. */
  readonly values: readonly (number | null)[];
  /** Draws a thin dashed line, for less important series. */
  readonly dashed?: boolean;
}

export interface ChartData {
  /** Starts of the buckets, or single points in time, ascending, in Unix seconds. */
  readonly starts: readonly number[];
  /** 0 if the starts are points in time, not buckets. */
  readonly bucketSeconds: number;
  /** The time range of the query, in Unix milliseconds. A bucket that extends beyond it is incomplete. */
  readonly rangeStart: number;
  readonly rangeEnd: number;
  readonly series: readonly ChartSeries[];
}

export interface ChartOptions {
  /** The accessible name. */
  readonly label: string;
  /** Stacked bars show counts, so the ticks of their axis are integers. */
  readonly type: 'stacked-bars' | 'lines';
  readonly formatValue: (value: number) => string;
  readonly formatTick: (value: number) => string;
}

/** The x values. A bucket is drawn at its middle. */
export function toX({ starts, bucketSeconds }: ChartData): number[] {
  return starts.map(start => start + bucketSeconds / 2);
}

/**
 * The starts of all buckets of a window, in Unix seconds, including those without a row: from the bucket that contains
 * now − window to the bucket that contains now. The server reports its time in whole seconds, so a row can be outside
 * this range; then the range is extended to include it.
 */
export function listBucketStarts(
  { windowSeconds, bucketSeconds }: { readonly windowSeconds: number; readonly bucketSeconds: number },
  nowMs: number,
  rowStarts: readonly number[],
): number[] {
  const floor = (seconds: number) => Math.floor(seconds / bucketSeconds) * bucketSeconds;
  const now = nowMs / 1000;
  const first = Math.min(floor(now - windowSeconds), rowStarts[0] ?? Number.POSITIVE_INFINITY);
  const last = Math.max(floor(now), rowStarts.at(-1) ?? 0);
  const starts: number[] = [];
  for (let start = first; start <= last; start += bucketSeconds) starts.push(start);
  return starts;
}
