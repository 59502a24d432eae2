// How uPlot is to draw a chart of ours.
import uPlot from 'uplot';
import { makeAxes, valueRange } from './axes.ts';
import type { ChartData, ChartKind, ChartSeries } from './model.ts';
import { inDrawingOrder } from './stack.ts';
import { type ChartTheme, readTheme } from './theme.ts';

/** With so few moments each gets a dot; with more, only those without neighbours, which no line would show. */
const DOTS_UP_TO = 31;

const BARS = uPlot.paths.bars?.({ size: [0.82, 110, 1] });

export function plotOptions(
  kind: ChartKind,
  data: () => ChartData,
  hidden: ReadonlySet<string>,
  size: { width: number; height: number },
): Omit<uPlot.Options, 'hooks'> {
  const theme = readTheme();
  const stacked = kind.shape === 'stacked-bars';
  const series = inDrawingOrder(data().series, stacked);
  return {
    ...size,
    padding: [10, 28, 0, 0], // half of a time's words may stand right of the last tick
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false, setScale: false }, points: { show: !stacked, size: 8 } },
    scales: { x: { time: true, range: () => timeRange(data()) }, y: { range: valueRange } },
    axes: makeAxes(kind, theme, data),
    series: [
      {},
      ...series.map(one => ({
        label: one.label,
        show: !hidden.has(one.key),
        ...(stacked ? barStyle(one, theme) : lineStyle(one, theme)),
      })),
    ],
  };
}

function timeRange({ starts, bucketSeconds }: ChartData): [number, number] {
  const first = starts[0] ?? 0;
  const last = (starts.at(-1) ?? first) + bucketSeconds;
  return last > first ? [first, last] : [first - 1, first + 1];
}

function barStyle({ color }: ChartSeries, theme: ChartTheme): Partial<uPlot.Series> {
  return {
    fill: theme.color(color),
    width: 0,
    ...(BARS === undefined ? {} : { paths: BARS }),
    points: { show: false },
  };
}

function lineStyle({ color, faint }: ChartSeries, theme: ChartTheme): Partial<uPlot.Series> {
  const stroke = theme.color(color);
  return {
    stroke,
    width: faint ? 1 : 2,
    ...(faint ? { dash: [4, 4] } : {}),
    spanGaps: false,
    points: { show: true, size: faint ? 4 : 5, width: 0, fill: stroke, filter: chooseDots },
  };
}

function chooseDots(plot: uPlot, seriesIndex: number): number[] | null {
  const column = plot.data[seriesIndex] ?? [];
  if (column.length <= DOTS_UP_TO) return null;
  const isValue = (i: number) => column[i] !== null && column[i] !== undefined;
  return [...column.keys()].filter(i => isValue(i) && !isValue(i - 1) && !isValue(i + 1));
}
