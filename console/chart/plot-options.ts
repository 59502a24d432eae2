// The uPlot configuration of a chart: colours, axes, series styles, and the columns of values that uPlot draws.
import uPlot from 'uplot';
import { h } from '../dom.ts';
import { formatDay, formatTime, formatTimeSeconds } from '../format.ts';
import type { ChartData, ChartOptions, ChartSeries } from './chart-data.ts';

/** With more points than this, only points without neighbours get a dot, because no line shows them. */
const MAX_DOTS = 31;
/** A bar is as wide as 82% of its bucket, at most 110 px and at least 1 px. */
const BARS = uPlot.paths.bars?.({ size: [0.82, 110, 1] });
const FONT = '12px system-ui, sans-serif';
const DAY_SECONDS = 86_400;
/** The space that the label of a bucket needs on the time axis. */
const BUCKET_LABEL_PIXELS = 52;
/** With more buckets than this, the time axis has labels at round times, not at buckets, unless a bucket is a day or longer. */
const MAX_LABELED_BUCKETS = 4;
/** 1, 2, 5, 10, 20, 50 and so on. */
const INTEGER_STEPS = Array.from({ length: 13 }, (_, i) => [1, 2, 5].map(step => step * 10 ** i)).flat();

const MIN_DRAG_PIXELS = 8;

/** The colours of the page, resolved: a canvas cannot use CSS variables. */
interface Palette {
  readonly text: string;
  readonly grid: string;
  color(name: string): string;
}

export function createPlotOptions(
  options: ChartOptions,
  getData: () => ChartData,
  hidden: ReadonlySet<string>,
  size: { width: number; height: number },
): Omit<uPlot.Options, 'hooks'> {
  const palette = readPalette();
  const isStacked = options.type === 'stacked-bars';
  const series = toDrawingOrder(getData().series, isStacked);
  return {
    ...size,
    padding: [10, 28, 0, 0], // room for the right half of the last time label
    legend: { show: false },
    cursor: {
      y: false,
      drag: {
        x: options.onSelectRange !== undefined,
        y: false,
        setScale: false,
        dist: MIN_DRAG_PIXELS,
        click: () => {}, // the default suppresses the click even if the mouse moved by one pixel only
      },
      points: { show: !isStacked, size: 8 },
      ...(options.cursorGroup === undefined ? {} : { sync: shareCursor(options.cursorGroup) }),
    },
    scales: { x: { time: true, range: () => timeRange(getData()) }, y: { range: valueRange } },
    axes: createAxes(options, palette, getData),
    series: [
      {},
      ...series.map(one => ({
        label: one.label,
        show: !hidden.has(one.key),
        ...(isStacked ? barStyle(one, palette) : lineStyle(one, palette)),
      })),
    ],
  };
}

/** Shares the position of the cursor in time, but not the selection. */
function shareCursor(key: string): uPlot.Cursor.Sync {
  const isMove = (type: string) => type === 'mousemove' || type === 'mouseleave';
  return { key, scales: ['x', null], setSeries: false, filters: { pub: isMove, sub: isMove } };
}

/** The values of each series in drawing order. The values of a stacked bar include those of the bars below it. */
export function toColumns(
  series: readonly ChartSeries[],
  isStacked: boolean,
  hidden: ReadonlySet<string>,
): (number | null)[][] {
  if (!isStacked) return toDrawingOrder(series, false).map(({ values }) => [...values]);
  const columns: (number | null)[][] = [];
  let previous: readonly number[] = [];
  for (const { key, values } of series) {
    const below = previous;
    const sums = values.map((value, i) => (below[i] ?? 0) + (hidden.has(key) ? 0 : (value ?? 0)));
    columns.unshift(sums);
    previous = sums;
  }
  return columns;
}

/**
 * uPlot draws later series over earlier ones. The highest bar of a stack is drawn first, so that the lower bars stay
 * visible. Lines are drawn from the last to the first, and dashed lines before all others.
 */
export function toDrawingOrder(series: readonly ChartSeries[], isStacked: boolean): readonly ChartSeries[] {
  const reversed = [...series].reverse();
  if (isStacked) return reversed;
  return [
    ...reversed.filter(({ dashed }) => dashed === true),
    ...reversed.filter(({ dashed }) => dashed !== true),
  ];
}

export function readPalette(): Palette {
  return { text: resolveColor('text-muted'), grid: resolveColor('grid'), color: resolveColor };
}

/** A colour of style/theme.css in the current palette. */
function resolveColor(name: string): string {
  const probe = h('span', { hidden: true });
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}

function barStyle({ color }: ChartSeries, palette: Palette): Partial<uPlot.Series> {
  return {
    fill: palette.color(color),
    width: 0,
    ...(BARS === undefined ? {} : { paths: BARS }),
    points: { show: false },
  };
}

function lineStyle({ color, dashed }: ChartSeries, palette: Palette): Partial<uPlot.Series> {
  const stroke = palette.color(color);
  return {
    stroke,
    width: dashed ? 1 : 2,
    ...(dashed ? { dash: [4, 4] } : {}),
    spanGaps: false,
    points: { show: true, size: dashed ? 4 : 5, width: 0, fill: stroke, filter: chooseDots },
  };
}

function chooseDots(plot: uPlot, seriesIndex: number): number[] | null {
  const column = plot.data[seriesIndex] ?? [];
  if (column.length <= MAX_DOTS) return null;
  const hasValue = (i: number) => column[i] !== null && column[i] !== undefined;
  return [...column.keys()].filter(i => hasValue(i) && !hasValue(i - 1) && !hasValue(i + 1));
}

function timeRange({ starts, bucketSeconds }: ChartData): [number, number] {
  const first = starts[0] ?? 0;
  const last = (starts.at(-1) ?? first) + bucketSeconds;
  return last > first ? [first, last] : [first - 1, first + 1];
}

function valueRange(_plot: uPlot, _min: number, max: number | null): [number, number] {
  return [0, max === null || max <= 0 ? 1 : max * 1.08];
}

function createAxes(options: ChartOptions, palette: Palette, getData: () => ChartData): uPlot.Axis[] {
  const common = { font: FONT, stroke: palette.text };
  return [
    {
      ...common,
      space: 64,
      size: 44,
      gap: 6,
      grid: { show: false },
      ticks: { stroke: palette.grid, width: 1, size: 5 },
      ...(hasBucketTicks(getData()) ? bucketTicks(getData) : { values: formatTimeTicks }),
    },
    {
      ...common,
      space: (_plot, _axis, _min, _max, height) => (height < 100 ? 20 : 44),
      size: 60,
      gap: 8,
      grid: { stroke: palette.grid, width: 1 },
      ticks: { show: false },
      values: (_plot, splits) => splits.map(options.formatTick),
      ...(options.type === 'stacked-bars' ? { incrs: INTEGER_STEPS } : {}),
    },
  ];
}

function formatTimeTicks(
  _plot: uPlot,
  splits: number[],
  _axis: number,
  _space: number,
  step: number,
): string[] {
  let lastDay = '';
  return splits.map(seconds => {
    const ms = seconds * 1000;
    const day = formatDay(ms);
    if (step >= DAY_SECONDS) return day;
    const time = step < 60 ? formatTimeSeconds(ms) : formatTime(ms);
    const isNewDay = day !== lastDay;
    lastDay = day;
    return isNewDay ? `${time}\n${day}` : time;
  });
}

function hasBucketTicks({ starts, bucketSeconds }: ChartData): boolean {
  return bucketSeconds >= DAY_SECONDS || (bucketSeconds > 0 && starts.length <= MAX_LABELED_BUCKETS);
}

/**
 * A tick for each bucket, or for every second, third, … one if there is no room for all labels. The label of a UTC day shows its
 * start in local time; that of a shorter bucket, its range.
 */
function bucketTicks(getData: () => ChartData): Pick<uPlot.Axis, 'splits' | 'values'> {
  return {
    splits: plot => {
      const { starts, bucketSeconds } = getData();
      const pixels = plot.bbox.width / devicePixelRatio;
      const stride = Math.max(1, Math.ceil((starts.length * BUCKET_LABEL_PIXELS) / pixels));
      return starts
        .filter((_, i) => (starts.length - 1 - i) % stride === 0)
        .map(start => start + bucketSeconds / 2);
    },
    values: (_plot, splits) =>
      splits.map(middle => {
        const half = getData().bucketSeconds / 2;
        const start = (middle - half) * 1000;
        const time = formatTime(start);
        if (half < DAY_SECONDS / 2)
          return `${time} – ${formatTime((middle + half) * 1000)}\n${formatDay(start)}`;
        return time === '00:00' ? formatDay(start) : `${formatDay(start)}\n${time}`;
      }),
  };
}
