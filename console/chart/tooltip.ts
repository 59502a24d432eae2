// The tooltip of a chart: the time of a point (local time and UTC) and the value of every visible series.
import { h, replaceChildren } from '../dom.ts';
import { formatBucketStart, formatDateTime, formatTime, formatTimeSeconds, formatUtc } from '../format.ts';
import { type ChartData, type ChartOptions, findIncompleteReason } from './chart-data.ts';

export interface Tooltip {
  readonly element: HTMLElement;
  /** `left` is the x position of the point within the chart, and `width` is the width of the chart, both in CSS pixels. */
  show(data: ChartData, hidden: ReadonlySet<string>, index: number, left: number, width: number): void;
  hide(): void;
}

export function createTooltip(options: ChartOptions): Tooltip {
  const element = h('div', { class: 'tooltip', hidden: true, 'aria-hidden': 'true' });
  return {
    element,
    show(data, hidden, index, left, width) {
      const rows = data.series
        .filter(({ key }) => !hidden.has(key))
        .map(({ label, color, values }) =>
          h(
            'div',
            { class: 'tooltip-row' },
            h('i', { class: `swatch ${color}` }),
            h('span', {}, label),
            h('b', {}, formatOptional(options, values[index])),
          ),
        );
      replaceChildren(
        element,
        h('strong', {}, describeTime(data, index)),
        h('small', {}, `${formatUtc((data.starts[index] ?? 0) * 1000)}${describeIncomplete(data, index)}`),
        ...(options.type === 'stacked-bars' ? rows.reverse() : rows),
      );
      element.hidden = false;
      const isRightHalf = left > width / 2;
      element.style.left = isRightHalf ? '' : `${left + 14}px`;
      element.style.right = isRightHalf ? `${width - left + 14}px` : '';
    },
    hide() {
      element.hidden = true;
    },
  };
}

/** One point as a sentence, for screen readers. */
export function describePoint(
  options: ChartOptions,
  data: ChartData,
  hidden: ReadonlySet<string>,
  index: number,
): string {
  const values = data.series
    .filter(({ key }) => !hidden.has(key))
    .map(({ label, values: column }) => `${label} ${formatOptional(options, column[index])}`);
  return `${describeTime(data, index)}: ${values.join(', ')}`;
}

function describeTime({ starts, bucketSeconds }: ChartData, index: number): string {
  const start = (starts[index] ?? 0) * 1000;
  if (bucketSeconds === 0) return formatDateTime(start);
  const end = start + bucketSeconds * 1000;
  if (bucketSeconds === 1) return formatTimeSeconds(start);
  const formatEnd = bucketSeconds < 60 ? formatTimeSeconds : formatTime;
  const to = bucketSeconds >= 86_400 ? formatBucketStart(end, bucketSeconds) : formatEnd(end);
  return `${formatBucketStart(start, bucketSeconds)} – ${to}`;
}

function describeIncomplete(data: ChartData, index: number): string {
  const reason = findIncompleteReason(data, index);
  return reason === undefined ? '' : ` · ${reason}`;
}

function formatOptional({ formatValue }: ChartOptions, value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : formatValue(value);
}
