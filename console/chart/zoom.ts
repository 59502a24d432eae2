// The zoom of a view's charts: a time range in the URL, and the bar that names it and returns to the whole range.
import { h } from '../dom.ts';
import { formatDay, formatTime, formatTimeSeconds } from '../format.ts';
import type { Shortcut } from '../shortcuts.ts';
import type { TimeRange } from './chart-data.ts';

/** The range of the setting `zoom`, such as `2026-11-14T09:00:00.000Z/2026-11-14T09:30:00.000Z`. */
export function parseZoom(setting: string | undefined): TimeRange | undefined {
  const [start = Number.NaN, end = Number.NaN] = (setting ?? '').split('/').map(text => Date.parse(text));
  return start < end ? { startMicros: start * 1000, endMicros: end * 1000 } : undefined;
}

export function formatZoom({ startMicros, endMicros }: TimeRange): string {
  const iso = (ms: number) => new Date(ms).toISOString();
  // Rounded outwards, so that a point at the edge of the range stays inside.
  return `${iso(Math.floor(startMicros / 1000))}/${iso(Math.ceil(endMicros / 1000))}`;
}

/** The starts of buckets, or points in time, that are within the range. All of them if none is. */
export function keepZoomed(starts: readonly number[], zoom: TimeRange | undefined): readonly number[] {
  if (zoom === undefined) return starts;
  const zoomed = starts.filter(start => start * 1e6 >= zoom.startMicros && start * 1e6 < zoom.endMicros);
  return zoomed.length === 0 ? starts : zoomed;
}

export interface ZoomBar {
  readonly element: HTMLElement;
  readonly shortcut: Shortcut;
  /** Hides the bar if the range is undefined. */
  show(zoom: TimeRange | undefined): void;
}

export function createZoomBar(onReset: () => void): ZoomBar {
  const text = h('p', { role: 'status' });
  const button = h('button', { type: 'button', class: 'button small', on: { click: onReset } }, 'Reset zoom');
  const element = h('div', { class: 'zoom-bar', hidden: true }, text, button);
  return {
    element,
    shortcut: {
      key: 'z',
      description: 'Reset the zoom of the charts',
      run: () => (element.hidden ? undefined : onReset()),
    },
    show(zoom) {
      element.hidden = zoom === undefined;
      text.textContent = zoom === undefined ? '' : `Zoomed to ${describeRange(zoom)}`;
    },
  };
}

function describeRange({ startMicros, endMicros }: TimeRange): string {
  const [start, end] = [startMicros / 1000, endMicros / 1000];
  const hasSeconds = start % 60_000 !== 0 || end % 60_000 !== 0;
  const formatClock = hasSeconds ? formatTimeSeconds : formatTime;
  const endDay = formatDay(end) === formatDay(start) ? '' : `${formatDay(end)}, `;
  return `${formatDay(start)}, ${formatClock(start)} – ${endDay}${formatClock(end)}`;
}
