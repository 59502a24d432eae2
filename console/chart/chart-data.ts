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
  readonly rangeStartMs: number;
  readonly rangeEndMs: number;
  /** When the query ran, by the server's clock, in Unix milliseconds. */
  readonly ranAtMs: number;
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
  /** `low`: a chart that supplements another one. `tall`: on a wide screen, as high as the two charts beside it. */
  readonly height?: 'low' | 'tall';
  /** Charts of the same group share a cursor. */
  readonly cursorGroup?: string;
  /** The user dragged over these buckets, or selected them with Shift and the arrow keys. */
  readonly onSelectRange?: ((range: TimeRange) => void) | undefined;
  /** The user clicked this bucket, or pressed Enter on it. `series` is the key of the bar or the only line that was clicked. */
  readonly onOpenBucket?: ((bucket: TimeRange, series: string | undefined) => void) | undefined;
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

/**
 * Why a bucket is incomplete: the range ends now, within the bucket (`in progress`), or the bucket starts before the range or ends
 * after it (`partial`). A bucket of 1 s counts as complete, because the server reports its time in whole seconds.
 */
export function findIncompleteReason(
  { starts, bucketSeconds, rangeStartMs, rangeEndMs, ranAtMs }: ChartData,
  index: number,
): 'in progress' | 'partial' | undefined {
  const start = (starts[index] ?? 0) * 1000;
  if (bucketSeconds <= 1) return undefined;
  if (start + bucketSeconds * 1000 > rangeEndMs) return rangeEndMs < ranAtMs ? 'partial' : 'in progress';
  return start < rangeStartMs ? 'partial' : undefined;
}

/**
 * The starts of all buckets of a window, in Unix seconds, including those without a row: from the bucket that contains
 * now − window to the bucket that contains now. The server reports its time in whole seconds, so a row can be outside
 * this range; then the range is extended to include it. `rowStarts` is ascending.
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

/** The largest maximum of the lines of a chart is less than this many times the smallest one. */
const MAX_MAGNITUDE_RATIO = 20;

/** Lines whose maxima differ too much get separate charts, because the lower line would look flat. */
export function groupByMagnitude<Line extends { readonly values: readonly (number | null)[] }>(
  lines: readonly Line[],
): Line[][] {
  const groups: { smallest: number; largest: number; lines: Line[] }[] = [];
  for (const line of lines) {
    const largest = line.values.reduce<number>((max, value) => Math.max(max, Math.abs(value ?? 0)), 0);
    const smallest = largest === 0 ? Number.POSITIVE_INFINITY : largest; // a line of zeros fits into every group
    const group = groups.find(
      other => Math.max(other.largest, largest) / Math.min(other.smallest, smallest) < MAX_MAGNITUDE_RATIO,
    );
    if (group === undefined) {
      groups.push({ smallest, largest, lines: [line] });
      continue;
    }
    group.smallest = Math.min(group.smallest, smallest);
    group.largest = Math.max(group.largest, largest);
    group.lines.push(line);
  }
  return groups.map(group => group.lines);
}
