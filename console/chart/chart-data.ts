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

/** From a start, inclusive, to an end, exclusive, in Unix microseconds. */
export interface TimeRange {
  readonly startMicros: number;
  readonly endMicros: number;
}

export interface ChartOptions {
  /** The accessible name. */
  readonly label: string;
  /** Stacked bars show counts, so the ticks of their axis are integers. */
  readonly type: 'stacked-bars' | 'lines';
  readonly formatValue: (value: number) => string;
  readonly formatTick: (value: number) => string;
  /** `low`: adds to another chart. `tall`: fills the column beside two other charts on a wide screen. */
  readonly height?: 'low' | 'tall';
  /** Charts of the same group share a cursor. */
  readonly cursorGroup?: string;
  /** The user dragged over these buckets, or selected them with Shift and the arrow keys. */
  readonly onSelectRange?: ((range: TimeRange) => void) | undefined;
  /** The user clicked this bucket, or pressed Enter on it. */
  readonly onOpenBucket?: ((bucket: TimeRange) => void) | undefined;
}

/** The x values. A bucket is drawn at its middle. */
export function toX({ starts, bucketSeconds }: ChartData): number[] {
  return starts.map(start => start + bucketSeconds / 2);
}

/** The buckets that contain two points in time, in Unix seconds, and all buckets between them. */
export function toTimeRange({ starts, bucketSeconds }: ChartData, from: number, to: number): TimeRange {
  const first = starts[0] ?? 0;
  const end = (starts.at(-1) ?? first) + bucketSeconds;
  if (bucketSeconds === 0) return { startMicros: toMicros(from), endMicros: toMicros(to) + 1 };
  const floor = (seconds: number) => first + Math.floor((seconds - first) / bucketSeconds) * bucketSeconds;
  const clamp = (seconds: number) => Math.min(Math.max(seconds, first), end - bucketSeconds);
  return {
    startMicros: toMicros(clamp(floor(from))),
    endMicros: toMicros(clamp(floor(to)) + bucketSeconds),
  };
}

function toMicros(seconds: number): number {
  return Math.round(seconds * 1e6);
}

/** A bucket of 1 s is never partial: the server reports its time in whole seconds. */
export function findPartial(
  { starts, bucketSeconds, rangeStart, rangeEnd }: ChartData,
  index: number,
): 'in progress' | 'partial' | undefined {
  const start = (starts[index] ?? 0) * 1000;
  if (bucketSeconds <= 1) return undefined;
  if (start + bucketSeconds * 1000 > rangeEnd) return 'in progress';
  return start < rangeStart ? 'partial' : undefined;
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
