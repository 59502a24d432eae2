// The API usage view: requests by service area.
import type { Endpoint } from '../api/catalog.ts';
import type { QueryResult, Row } from '../api/client.ts';
import { listBucketStarts, type TimeRange } from '../chart/chart-data.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { createZoomBar, formatZoom, keepZoomed, parseZoom } from '../chart/zoom.ts';
import { createSegmentedControl, type Option } from '../components/controls.ts';
import { CollapsibleTable, createNumberCell, createTable, createTimeCell } from '../components/data-table.ts';
import type { Action } from '../components/messages.ts';
import { type Query, QueryPanel } from '../components/query-panel.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatPercent, formatPeriod } from '../format.ts';
import { createWiderAction, type Interval, type Intervals, readIntervals } from './interval.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

const AREAS = [
  { key: 'total_rest_requests', label: 'REST', color: 'chart-blue', path: '/rest' },
  { key: 'total_auth_requests', label: 'Auth', color: 'chart-violet', path: '/auth' },
  { key: 'total_storage_requests', label: 'Storage', color: 'chart-amber', path: '/storage' },
  { key: 'total_realtime_requests', label: 'Realtime', color: 'chart-teal', path: '/realtime' },
] as const;

export function defineUsageView(endpoint: Endpoint): ViewDefinition {
  const intervals = readIntervals(endpoint);
  return {
    name: 'usage',
    title: 'API usage',
    defaults: { interval: intervals.default.name },
    open: context => openUsage(endpoint, intervals, context),
  };
}

function openUsage(endpoint: Endpoint, intervals: Intervals, context: ViewContext): View {
  const intervalControl = createSegmentedControl('Interval', intervals.all.map(toOption), interval =>
    context.updateSettings({ interval, zoom: '' }),
  );
  const zoomBar = createZoomBar(() => context.updateSettings({ zoom: '' }));
  const openLogs = context.logsOpenerFor('edge');
  const chart = new TimeChart('Requests by service area', {
    label: 'Requests by service area over time, stacked bars',
    type: 'stacked-bars',
    formatValue: formatCount,
    formatTick: formatCompact,
    onSelectRange: range => context.updateSettings({ zoom: formatZoom(range) }),
    onOpenBucket: openLogs && (range => openLogs(range)),
  });
  const toWiderAction = (current: Interval) =>
    createWiderAction(intervals, current, name => context.updateSettings({ interval: name, zoom: '' }));
  const table = new CollapsibleTable('All values as a table');
  let interval = intervals.default;
  let zoom: TimeRange | undefined;
  const panel = new QueryPanel({
    content: h('div', { class: 'stack' }, chart.element, table.element),
    render: result => {
      renderChart(result, interval, zoom, chart);
      table.render(() => createValueTable(result.rows));
    },
    markInvalid: () => {},
    context,
  });
  return {
    shortcuts: [...panel.shortcuts, zoomBar.shortcut],
    element: h(
      'div',
      { class: 'view' },
      h(
        'div',
        { class: 'controls' },
        intervalControl.element,
        h(
          'p',
          { class: 'controls-note' },
          'Counts requests whose URL matches the project reference, which is used as a regular expression. A request can count in several areas.',
        ),
      ),
      zoomBar.element,
      panel.element,
    ),
    show({ project, settings }) {
      const requested = settings['interval'] ?? intervals.default.name;
      const selected = intervals.find(requested);
      intervalControl.setValue(requested);
      zoom = parseZoom(settings['zoom']);
      zoomBar.show(zoom);
      interval = zoom === undefined ? selected : intervals.findFinest(selected, zoom.startMicros / 1000);
      // An unlisted interval is sent unchanged, because the API returns an error that lists the intervals.
      const sent = interval === selected ? requested : interval.name;
      if (project === '') panel.promptForProject();
      else panel.run(createQuery(endpoint.name, project, sent, interval, toWiderAction(interval)));
    },
    close() {
      panel.close();
      chart.close();
    },
  };
}

function toOption({ name, windowSeconds, bucketSeconds }: Interval): Option {
  const bucket = `${bucketSeconds < 86_400 ? '' : 'UTC '}${formatPeriod(bucketSeconds)}`;
  return {
    value: name,
    label: name.charAt(0).toUpperCase() + name.slice(1),
    title: `The last ${formatPeriod(windowSeconds)}, one bucket per ${bucket}`,
  };
}

function createQuery(
  endpoint: string,
  project: string,
  intervalName: string,
  { windowSeconds, refreshSeconds }: Interval,
  widerRangeAction: Action | undefined,
): Query {
  return {
    endpoint,
    key: JSON.stringify([project, intervalName]),
    parameters: () => ({ project, interval: intervalName }),
    windowSeconds,
    refreshSeconds,
    emptyState: {
      title: `No requests that match ${project} in the last ${formatPeriod(windowSeconds)}`,
      hints: ['The project is matched against the whole URL, and upper and lower case must match.'],
      log: 'edge request log',
      windowSeconds,
      firstLog: { kind: 'edge', project },
      widerRangeAction,
    },
  };
}

function renderChart(
  { rows, ranAt }: QueryResult,
  interval: Interval,
  zoom: TimeRange | undefined,
  chart: TimeChart,
): void {
  const rowsByStart = new Map(rows.map(row => [readStart(row), row]));
  const starts = keepZoomed(listBucketStarts(interval, ranAt, [...rowsByStart.keys()]), zoom);
  const totals = AREAS.map(({ key }) =>
    starts.reduce((total, start) => total + Number(rowsByStart.get(start)?.[key] ?? 0), 0),
  );
  const sum = totals.reduce((subtotal, total) => subtotal + total, 0);
  chart.render(
    {
      starts,
      bucketSeconds: interval.bucketSeconds,
      rangeStartMs: ranAt - interval.windowSeconds * 1000,
      rangeEndMs: ranAt,
      ranAtMs: ranAt,
      series: AREAS.map(area => ({
        ...area,
        values: starts.map(start => Number(rowsByStart.get(start)?.[area.key] ?? 0)),
      })),
    },
    AREAS.map((area, i) => ({
      ...area,
      value: formatCount(totals[i] ?? 0),
      description: `${formatPercent(sum === 0 ? 0 : (totals[i] ?? 0) / sum)} · paths with ${area.path}`,
    })),
  );
}

function createValueTable(rows: readonly Row[]): HTMLElement {
  return createTable(
    'Requests by service area and bucket, without empty buckets',
    [{ heading: 'Bucket start' }, ...AREAS.map(({ label }) => ({ heading: label, numeric: true }))],
    rows.map(row => [
      createTimeCell(readStart(row) * 1e6),
      ...AREAS.map(({ key }) => createNumberCell(row[key])),
    ]),
  );
}

/** The start of a row's bucket in Unix seconds. */
function readStart(row: Row): number {
  return Date.parse(String(row['timestamp'])) / 1000;
}
