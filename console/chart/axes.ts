// The axes: time in the visitor's zone, values from zero.
import type uPlot from 'uplot';
import { formatClock, formatClockSeconds, formatDay } from '../times.ts';
import type { ChartData, ChartKind } from './model.ts';
import type { ChartTheme } from './theme.ts';

const FONT = '12px system-ui, sans-serif';
const DAY_SECONDS = 86_400;
const BUCKET_LABEL_PIXELS = 52;
/** So few buckets are named one by one. */
const FEW_BUCKETS = 4;
const WHOLE_STEPS = [1, 2, 5].flatMap(step => Array.from({ length: 13 }, (_, power) => step * 10 ** power));

export function makeAxes(kind: ChartKind, theme: ChartTheme, data: () => ChartData): uPlot.Axis[] {
  const common = { font: FONT, stroke: theme.text };
  return [
    {
      ...common,
      space: 64,
      size: 44,
      gap: 6,
      grid: { show: false },
      ticks: { stroke: theme.grid, width: 1, size: 5 },
      ...(hasBucketTicks(data()) ? bucketTicks(data) : { values: formatTicks }),
    },
    {
      ...common,
      space: 44,
      size: 60,
      gap: 8,
      grid: { stroke: theme.grid, width: 1 },
      ticks: { show: false },
      values: (_plot, splits) => splits.map(kind.formatAxis),
      ...(kind.whole ? { incrs: WHOLE_STEPS.toSorted((a, b) => a - b) } : {}),
    },
  ];
}

/** From zero to a little above the highest value. */
export function valueRange(_plot: uPlot, _min: number, max: number | null): [number, number] {
  return [0, max === null || max <= 0 ? 1 : max * 1.08];
}

function formatTicks(_plot: uPlot, splits: number[], _axis: number, _space: number, step: number): string[] {
  let lastDay = '';
  return splits.map(seconds => {
    const ms = seconds * 1000;
    const day = formatDay(ms);
    if (step >= DAY_SECONDS) return day;
    const time = step < 60 ? formatClockSeconds(ms) : formatClock(ms);
    const isNewDay = day !== lastDay;
    lastDay = day;
    return isNewDay ? `${time}\n${day}` : time;
  });
}

function hasBucketTicks({ starts, bucketSeconds }: ChartData): boolean {
  return bucketSeconds >= DAY_SECONDS || (bucketSeconds > 0 && starts.length <= FEW_BUCKETS);
}

/** A tick for each bucket: the UTC day with the hour at which it begins here, or from when to when. */
function bucketTicks(data: () => ChartData): Pick<uPlot.Axis, 'splits' | 'values'> {
  return {
    splits: plot => {
      const { starts, bucketSeconds } = data();
      const pixels = plot.bbox.width / devicePixelRatio;
      const stride = Math.max(1, Math.ceil((starts.length * BUCKET_LABEL_PIXELS) / pixels));
      return starts
        .filter((_, i) => (starts.length - 1 - i) % stride === 0)
        .map(start => start + bucketSeconds / 2);
    },
    values: (_plot, splits) =>
      splits.map(middle => {
        const half = data().bucketSeconds / 2;
        const start = (middle - half) * 1000;
        const time = formatClock(start);
        if (half < DAY_SECONDS / 2)
          return `${time} – ${formatClock((middle + half) * 1000)}\n${formatDay(start)}`;
        return time === '00:00' ? formatDay(start) : `${formatDay(start)}\n${time}`;
      }),
  };
}
