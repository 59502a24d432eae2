// The API usage view: requests by service area.
import type { Endpoint } from '../api/catalog.ts';
import type { QueryResult, Row } from '../api/client.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { CollapsibleTable, createNumberCell, createTable, createTimeCell } from '../components/data-table.ts';
import { type Query, QueryPanel } from '../components/query-panel.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatPercent } from '../format.ts';
import { describeRange, zoomTo } from '../time-range.ts';
import type { UrlState } from '../url-state.ts';
import { chooseInterval, createWiderAction, type Interval, isInRange, listStarts } from './interval.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

export const SERVICE_AREAS = [
  { key: 'total_rest_requests', label: 'REST', color: 'chart-blue', path: '/rest' },
  { key: 'total_auth_requests', label: 'Auth', color: 'chart-violet', path: '/auth' },
  { key: 'total_storage_requests', label: 'Storage', color: 'chart-amber', path: '/storage' },
  { key: 'total_realtime_requests', label: 'Realtime', color: 'chart-teal', path: '/realtime' },
] as const;

export function defineUsageView(endpoint: Endpoint): ViewDefinition {
  return {
    name: 'usage',
    title: 'API usage',
    kind: 'edge',
    defaults: {},
    open: context => openUsage(endpoint, context),
  };
}

function openUsage(endpoint: Endpoint, context: ViewContext): View {
  const { updateSettings } = context;
  const openLogs = context.logsOpenerFor('edge');
  const chart = new TimeChart('Requests by service area', {
    label: 'Requests by service area over time, stacked bars',
    type: 'stacked-bars',
    formatValue: formatCount,
    formatTick: formatCompact,
    onSelectRange: range => updateSettings(zoomTo(range)),
    onOpenBucket:
      openLogs &&
      ((range, series) => {
        const area = SERVICE_AREAS.find(({ key }) => key === series);
        openLogs(range, area === undefined ? '' : `path:*${area.path}*`);
      }),
  });
  const table = new CollapsibleTable('All values as a table');
  const limit = h('p', { class: 'note', role: 'status' });
  let interval = chooseInterval(endpoint, {});
  const panel = new QueryPanel({
    content: h('div', { class: 'stack' }, chart.element, table.element),
    render: result => {
      renderChart(result, interval, chart);
      table.render(() => createValueTable(result.rows));
    },
    markInvalid: () => {},
    context,
  });
  return {
    shortcuts: panel.shortcuts,
    element: h(
      'div',
      { class: 'view' },
      h(
        'p',
        { class: 'controls-note' },
        'Counts requests whose URL matches the project reference, which is used as a regular expression. A request can count in several areas.',
      ),
      limit,
      panel.element,
    ),
    show(state) {
      interval = chooseInterval(endpoint, state.settings);
      limit.textContent = interval.limit;
      limit.hidden = interval.limit === '';
      if (state.project === '') panel.promptForProject();
      else panel.run(createQuery(endpoint.name, state, interval, updateSettings));
    },
    close() {
      panel.close();
      chart.close();
    },
  };
}

function createQuery(
  endpoint: string,
  { project, settings }: UrlState,
  interval: Interval,
  updateSettings: ViewContext['updateSettings'],
): Query {
  const { name, windowSeconds, refreshSeconds } = interval;
  return {
    endpoint,
    key: JSON.stringify([project, settings]),
    parameters: () => ({ project, interval: name }),
    windowSeconds,
    refreshSeconds,
    keep: (row, ranAt) => isInRange(interval, readStart(row), ranAt),
    emptyState: {
      title: `No requests that match ${project} ${describeRange(settings)}`,
      hints: ['The project is matched against the whole URL, and upper and lower case must match.'],
      log: 'edge request log',
      windowSeconds,
      source: { kind: 'edge', project },
      widerRangeAction: createWiderAction(settings, updateSettings),
    },
  };
}

function renderChart({ rows, ranAt }: QueryResult, interval: Interval, chart: TimeChart): void {
  const rowsByStart = new Map(rows.map(row => [readStart(row), row]));
  const starts = listStarts(interval, ranAt, [...rowsByStart.keys()]);
  const totals = SERVICE_AREAS.map(({ key }) =>
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
      series: SERVICE_AREAS.map(area => ({
        ...area,
        values: starts.map(start => Number(rowsByStart.get(start)?.[area.key] ?? 0)),
      })),
    },
    SERVICE_AREAS.map((area, i) => ({
      ...area,
      value: formatCount(totals[i] ?? 0),
      description: `${formatPercent(sum === 0 ? 0 : (totals[i] ?? 0) / sum)} · paths with ${area.path}`,
    })),
  );
}

function createValueTable(rows: readonly Row[]): HTMLElement {
  return createTable(
    'Requests by service area and bucket, without empty buckets',
    [{ heading: 'Bucket start' }, ...SERVICE_AREAS.map(({ label }) => ({ heading: label, numeric: true }))],
    rows.map(row => [
      createTimeCell(readStart(row) * 1e6),
      ...SERVICE_AREAS.map(({ key }) => createNumberCell(row[key])),
    ]),
  );
}

/** The start of a row's bucket in Unix seconds. */
function readStart(row: Row): number {
  return Date.parse(String(row['timestamp'])) / 1000;
}
