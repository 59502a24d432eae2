// What stands under the cursor: the bucket's time here and in UTC, and every value with its unit.
import { h, replaceChildren } from '../dom.ts';
import { formatBucket, formatClock, formatClockSeconds, formatFull, formatUtc } from '../times.ts';
import type { ChartData, ChartKind } from './model.ts';

export interface Tooltip {
  readonly element: HTMLElement;
  show(data: ChartData, hidden: ReadonlySet<string>, index: number, left: number, width: number): void;
  hide(): void;
}

export function makeTooltip(kind: ChartKind): Tooltip {
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
            h('b', {}, wordValue(kind, values[index])),
          ),
        );
      replaceChildren(
        element,
        h('strong', {}, describeTime(data, index)),
        h('small', {}, `${formatUtc((data.starts[index] ?? 0) * 1000)}${isPartial(data, index)}`),
        ...(kind.shape === 'stacked-bars' ? rows.reverse() : rows),
      );
      element.hidden = false;
      const isRight = left > width / 2;
      element.style.left = isRight ? '' : `${left + 14}px`;
      element.style.right = isRight ? `${width - left + 14}px` : '';
    },
    hide() {
      element.hidden = true;
    },
  };
}

/** One moment as a sentence, for whoever moves along the chart by keyboard and listens. */
export function describeMoment(
  kind: ChartKind,
  data: ChartData,
  hidden: ReadonlySet<string>,
  index: number,
): string {
  const values = data.series
    .filter(({ key }) => !hidden.has(key))
    .map(({ label, values: column }) => `${label} ${wordValue(kind, column[index])}`);
  return `${describeTime(data, index)}: ${values.join(', ')}`;
}

function describeTime({ starts, bucketSeconds }: ChartData, index: number): string {
  const start = (starts[index] ?? 0) * 1000;
  if (bucketSeconds === 0) return formatFull(start);
  const end = start + bucketSeconds * 1000;
  if (bucketSeconds === 1) return formatClockSeconds(start);
  const to = bucketSeconds >= 86_400 ? formatBucket(end, bucketSeconds) : formatClock(end);
  return `${formatBucket(start, bucketSeconds)} – ${to}`;
}

function isPartial({ starts, bucketSeconds, countedFrom, countedTo }: ChartData, index: number): string {
  const start = (starts[index] ?? 0) * 1000;
  if (bucketSeconds <= 1) return '';
  if (start + bucketSeconds * 1000 > countedTo) return ' · so far';
  return start < countedFrom ? ' · in part' : '';
}

function wordValue(kind: ChartKind, value: number | null | undefined): string {
  return value === null || value === undefined ? '–' : kind.format(value);
}
