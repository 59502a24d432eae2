// The functions view: invocations, errors and execution times of serverless functions.
import type { Endpoint } from '../api/catalog.ts';
import type { QueryResult, Row } from '../api/client.ts';
import { listBucketStarts } from '../chart/chart-data.ts';
import type { LegendEntry } from '../chart/legend.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { createSegmentedControl, createTextField } from '../components/controls.ts';
import { CollapsibleTable, createNumberCell, createTable, createTimeCell } from '../components/data-table.ts';
import { type Query, QueryPanel } from '../components/query-panel.ts';
import { h } from '../dom.ts';
import {
  formatCompact,
  formatCount,
  formatMilliseconds,
  formatPercent,
  formatPeriod,
  formatShortDuration,
} from '../format.ts';
import { type Interval, type Intervals, readIntervals } from './interval.ts';
import type { View, ViewContext, ViewDefinition } from './view.ts';

const COUNT_SERIES = [
  { key: 'error_count', label: 'Errors', color: 'chart-red' },
  { key: 'success_count', label: 'Succeeded', color: 'chart-blue' },
] as const;

const P95 = 'peak bucket · 95 % took at most this';
const P99 = 'peak bucket · 99 % took at most this';

const TIME_SERIES = [
  { key: 'min_execution_time', label: 'Min', color: 'chart-gray', dashed: true, description: 'shortest' },
  {
    key: 'avg_execution_time',
    label: 'Avg',
    color: 'chart-blue',
    description: 'mean, weighted by invocations',
  },
  { key: 'p95_execution_time', label: 'p95', color: 'chart-violet', description: P95 },
  { key: 'p99_execution_time', label: 'p99', color: 'chart-amber', description: P99 },
  { key: 'max_execution_time', label: 'Max', color: 'chart-red', dashed: true, description: 'longest' },
] as const;

export function defineFunctionsView(endpoint: Endpoint): ViewDefinition {
  const intervals = readIntervals(endpoint);
  return {
    name: 'functions',
    title: 'Functions',
    defaults: { interval: intervals.default.name },
    open: context => openFunctions(endpoint, intervals, context),
  };
}

function openFunctions(endpoint: Endpoint, intervals: Intervals, context: ViewContext): View {
  const { updateSettings } = context;
  const intervalControl = createSegmentedControl(
    'Interval',
    intervals.all.map(({ name, windowSeconds }) => ({
      value: name,
      label: formatShortDuration(windowSeconds),
      title: `The last ${formatPeriod(windowSeconds)}`,
    })),
    interval => updateSettings({ interval }),
  );
  const functionField = createTextField('Function id', { placeholder: 'all functions', mono: true }, value =>
    updateSettings({ function: value.trim() }),
  );
  const counts = new TimeChart('Invocations', {
    label: 'Invocations and errors over time, stacked bars',
    type: 'stacked-bars',
    formatValue: formatCount,
    formatTick: formatCompact,
  });
  const times = new TimeChart('Execution time', {
    label: 'Execution times over time, lines in milliseconds',
    type: 'lines',
    formatValue: formatMilliseconds,
    formatTick: formatMilliseconds,
  });
  const table = new CollapsibleTable('All values as a table');
  let interval = intervals.default;
  const panel = new QueryPanel({
    content: h('div', { class: 'stack' }, counts.element, times.element, table.element),
    render: result => {
      renderCharts(result, interval, counts, times);
      table.render(() => createValueTable(result.rows));
    },
    markInvalid: param => functionField.setInvalid(param === 'function_id'),
    context,
  });
  return {
    element: h(
      'div',
      { class: 'view' },
      h('div', { class: 'controls' }, intervalControl.element, functionField.element),
      panel.element,
    ),
    show({ project, settings }) {
      interval = intervals.find(settings['interval']);
      const functionId = settings['function'] ?? '';
      intervalControl.setValue(interval.name);
      functionField.setValue(functionId);
      if (project === '') panel.promptForProject();
      else panel.run(createQuery(endpoint.name, project, functionId, interval));
    },
    close() {
      panel.close();
      counts.close();
      times.close();
    },
  };
}

function createQuery(endpoint: string, project: string, functionId: string, interval: Interval): Query {
  const { name, windowSeconds, refreshSeconds } = interval;
  const subject = functionId === '' ? '' : ` of function ${functionId}`;
  return {
    endpoint,
    parameters: () => ({ project, function_id: functionId, interval: name }),
    windowSeconds,
    refreshSeconds,
    emptyState: {
      title: `No invocations${subject} in project ${project} in the last ${formatPeriod(windowSeconds)}`,
      hints: functionId === '' ? [] : ['The function id must match exactly. Check its spelling.'],
      log: 'function log',
      windowSeconds,
    },
  };
}

function renderCharts(result: QueryResult, interval: Interval, counts: TimeChart, times: TimeChart): void {
  const { ranAt } = result;
  const rows = result.rows.map(addSuccessCount);
  const rowsByStart = new Map(rows.map(row => [Number(row['timestamp']) / 1e6, row]));
  const starts = listBucketStarts(interval, ranAt, [...rowsByStart.keys()]);
  const bucketRows = starts.map(start => rowsByStart.get(start));
  // rangeStart is 0 because the first bucket is complete: the endpoint extends the window to the start of that bucket.
  const common = { starts, bucketSeconds: interval.bucketSeconds, rangeStart: 0, rangeEnd: ranAt };
  const countSeries = COUNT_SERIES.map(series => ({
    ...series,
    values: bucketRows.map(row => readNumber(row, series.key)),
  }));
  counts.render({ ...common, series: countSeries }, createCountEntries(rows));
  const timeSeries = TIME_SERIES.map(series => ({
    ...series,
    values: bucketRows.map(row => (row?.[series.key] ?? null) as number | null),
  }));
  times.render({ ...common, series: timeSeries }, createTimeEntries(rows));
}

function createValueTable(rows: readonly Row[]): HTMLElement {
  const numbers = ['count', 'error_count', ...TIME_SERIES.map(({ key }) => key)];
  const headings = ['Invocations', 'Errors', ...TIME_SERIES.map(({ label }) => `${label} (ms)`)];
  return createTable(
    'Invocations, errors and execution times by bucket, without empty buckets',
    [{ heading: 'Bucket start' }, ...headings.map(heading => ({ heading, numeric: true }))],
    rows.map(row => [
      createTimeCell(Number(row['timestamp'])),
      ...numbers.map(key => createNumberCell(row[key])),
    ]),
  );
}

function createCountEntries(rows: readonly Row[]): LegendEntry[] {
  const count = sum(rows, 'count');
  const errorRatio = count === 0 ? 0 : sum(rows, 'error_count') / count;
  const descriptions = {
    error_count: `${formatPercent(errorRatio)} of all · status 400 or higher`,
    success_count: `of ${formatCount(count)} invocations`,
  };
  return COUNT_SERIES.map(series => ({
    ...series,
    value: formatCount(sum(rows, series.key)),
    description: descriptions[series.key],
  })).reverse();
}

function createTimeEntries(rows: readonly Row[]): LegendEntry[] {
  return TIME_SERIES.map(series => {
    const value = summarize(rows, series.key);
    return { ...series, value: value === undefined ? '–' : formatMilliseconds(value) };
  });
}

/** The number of a series in the legend: the lowest minimum, the mean, or the highest value of all buckets. */
function summarize(rows: readonly Row[], key: string): number | undefined {
  const rowsWithValue = rows.filter(row => typeof row[key] === 'number');
  if (key === 'avg_execution_time') return weightedMean(rowsWithValue);
  const values = rowsWithValue.map(row => readNumber(row, key));
  if (values.length === 0) return undefined;
  return key === 'min_execution_time' ? Math.min(...values) : Math.max(...values);
}

function weightedMean(rows: readonly Row[]): number | undefined {
  const weight = sum(rows, 'count');
  const total = rows.reduce(
    (subtotal, row) => subtotal + readNumber(row, 'avg_execution_time') * readNumber(row, 'count'),
    0,
  );
  return weight === 0 ? undefined : total / weight;
}

function addSuccessCount(row: Row): Row {
  return { ...row, success_count: readNumber(row, 'count') - readNumber(row, 'error_count') };
}

function sum(rows: readonly Row[], key: string): number {
  return rows.reduce((total, row) => total + readNumber(row, key), 0);
}

/** 0 if there is no row or no value. */
function readNumber(row: Row | undefined, key: string): number {
  return Number(row?.[key] ?? 0);
}
