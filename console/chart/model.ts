// What a chart is given: series of values over the same moments, and how to word them.

export interface ChartSeries {
  readonly key: string;
  readonly label: string;
  /** Name of a colour of style/theme.css, such as `chart-blue`. */
  readonly color: string;
  /** One for each moment; null is a gap. */
  readonly values: readonly (number | null)[];
  /** Drawn thin and dashed: the frame of the picture, not its subject. */
  readonly faint?: boolean;
}

export interface ChartData {
  /** Starts of the buckets, or moments, ascending, Unix seconds. */
  readonly starts: readonly number[];
  /** 0: these are moments, not buckets. */
  readonly bucketSeconds: number;
  /** The window that was counted, in milliseconds: a bucket that reaches beyond it is not full. */
  readonly countedFrom: number;
  readonly countedTo: number;
  readonly series: readonly ChartSeries[];
}

export interface ChartKind {
  /** What a screen reader calls the picture. */
  readonly label: string;
  readonly shape: 'stacked-bars' | 'lines';
  readonly format: (value: number) => string;
  readonly formatAxis: (value: number) => string;
  /** Values are whole, and so are the ticks. */
  readonly whole: boolean;
}

/** Where a bucket is drawn: at its middle. */
export function toX({ starts, bucketSeconds }: ChartData): number[] {
  return starts.map(start => start + bucketSeconds / 2);
}
