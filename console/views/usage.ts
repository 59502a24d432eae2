// API usage: how many requests each service area got.
import type { Place } from '../address.ts';
import type { Answer, Row } from '../api/answer.ts';
import { bucketStarts, type Window } from '../buckets.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatShare } from '../numbers.ts';
import { Panel, type Question } from '../panel/panel.ts';
import { makeTable, numberCell, TableBehind, timeCell } from '../parts/data-table.ts';
import { makeSegmented } from '../parts/segmented.ts';
import type { View, ViewContext, ViewKind } from './view.ts';

interface Interval extends Window {
  readonly words: string;
  readonly refreshSeconds: number;
}

const INTERVALS: Readonly<Record<string, Interval>> = {
  minutely: { words: '60 minutes', windowSeconds: 3600, bucketSeconds: 60, refreshSeconds: 60 },
  hourly: { words: 'hour', windowSeconds: 3600, bucketSeconds: 3600, refreshSeconds: 60 },
  daily: { words: '7 days', windowSeconds: 604_800, bucketSeconds: 86_400, refreshSeconds: 300 },
};
const CHOICES = [
  { value: 'minutely', label: 'Minutely', title: 'The last 60 minutes, minute by minute' },
  { value: 'hourly', label: 'Hourly', title: 'The last hour, by the hour' },
  { value: 'daily', label: 'Daily', title: 'The last 7 days, by the UTC day' },
];
const DEFAULT = 'minutely';

const AREAS = [
  { key: 'total_rest_requests', label: 'REST', color: 'chart-blue', path: '/rest' },
  { key: 'total_auth_requests', label: 'Auth', color: 'chart-violet', path: '/auth' },
  { key: 'total_storage_requests', label: 'Storage', color: 'chart-amber', path: '/storage' },
  { key: 'total_realtime_requests', label: 'Realtime', color: 'chart-teal', path: '/realtime' },
] as const;

export const usageView: ViewKind = {
  name: 'usage',
  title: 'API usage',
  endpoint: 'usage.api-counts',
  defaults: { interval: DEFAULT },
  open: openUsage,
};

function openUsage(context: ViewContext): View {
  const { change } = context;
  const interval = makeSegmented('Interval', CHOICES, value => change({ interval: value }));
  const chart = new TimeChart('Requests by service area', {
    label: 'Requests by service area over time, stacked bars',
    shape: 'stacked-bars',
    format: formatCount,
    formatAxis: formatCompact,
    whole: true,
  });
  const table = new TableBehind('All values as a table');
  let shown = INTERVALS[DEFAULT] as Interval;
  const panel = new Panel({
    content: h('div', { class: 'stack' }, chart.element, table.element),
    draw: answer => {
      drawChart(answer, shown, chart);
      table.draw(() => drawTable(answer.rows));
    },
    markFault: () => {},
    context,
  });
  return {
    element: h(
      'div',
      { class: 'view' },
      h(
        'div',
        { class: 'controls' },
        interval.element,
        h(
          'p',
          { class: 'controls-note' },
          'Counts requests whose URL matches the project as a regular expression. One path may count in several areas.',
        ),
      ),
      panel.element,
    ),
    show(place) {
      const chosen = place.settings['interval'] ?? DEFAULT;
      interval.set(chosen);
      shown = INTERVALS[Object.hasOwn(INTERVALS, chosen) ? chosen : DEFAULT] as Interval;
      if (place.project === '') panel.askForProject();
      else panel.ask(toQuestion(place, chosen, shown));
    },
    close() {
      panel.close();
      chart.close();
    },
  };
}

function toQuestion({ project }: Place, interval: string, window: Interval): Question {
  return {
    endpoint: usageView.endpoint,
    parameters: () => ({ project, interval }),
    windowSeconds: window.windowSeconds,
    refreshSeconds: window.refreshSeconds,
    empty: {
      title: `No requests that match ${project} in the last ${window.words}`,
      hints: ['the project is matched against the whole URL, in upper and lower case as written.'],
      log: 'edge request log',
      windowSeconds: window.windowSeconds,
    },
  };
}

function drawChart({ rows, askedAt }: Answer, window: Interval, chart: TimeChart): void {
  const byStart = new Map(rows.map(row => [startOf(row), row]));
  const starts = bucketStarts(window, askedAt, [...byStart.keys()]);
  const totals = AREAS.map(({ key }) => rows.reduce((total, row) => total + Number(row[key]), 0));
  const all = totals.reduce((sum, total) => sum + total, 0);
  chart.draw(
    {
      starts,
      bucketSeconds: window.bucketSeconds,
      countedFrom: askedAt - window.windowSeconds * 1000,
      countedTo: askedAt,
      series: AREAS.map(area => ({
        ...area,
        values: starts.map(start => Number(byStart.get(start)?.[area.key] ?? 0)),
      })),
    },
    AREAS.map(({ key, label, color, path }, i) => ({
      key,
      label,
      color,
      value: formatCount(totals[i] ?? 0),
      meaning: `${formatShare(all === 0 ? 0 : (totals[i] ?? 0) / all)} · paths with ${path}`,
    })),
  );
}

function drawTable(rows: readonly Row[]): HTMLElement {
  return makeTable(
    'Requests by service area and bucket; buckets without requests are left out',
    [{ heading: 'Bucket start' }, ...AREAS.map(({ label }) => ({ heading: label, numeric: true }))],
    rows.map(row => [timeCell(startOf(row) * 1e6), ...AREAS.map(({ key }) => numberCell(row[key]))]),
  );
}

/** Unix seconds. */
function startOf(row: Row): number {
  return Date.parse(String(row['timestamp'])) / 1000;
}
