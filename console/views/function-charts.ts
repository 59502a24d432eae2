// The charts of the functions view: invocations, error rate and execution times. They share a cursor and a zoom.
import type { QueryResult, Row } from '../api/client.ts';
import type { ChartOptions } from '../chart/chart-data.ts';
import type { LegendEntry } from '../chart/legend.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { createNumberCell, createTable, createTimeCell } from '../components/data-table.ts';
import { h } from '../dom.ts';
import {
  formatCompact,
  formatCount,
  formatDay,
  formatMilliseconds,
  formatPercent,
  formatPeriod,
  formatTime,
  formatTimeSeconds,
} from '../format.ts';
import {
  chooseMergedSeconds,
  findExtreme,
  floorTo,
  MAX_BUCKETS,
  mergeRows,
  readNumber,
  readStart,
  sum,
  weightedMean,
} from './function-stats.ts';
import { type Interval, listStarts } from './interval.ts';

const COUNT_SERIES = [
  { key: 'error_count', label: 'Errors', color: 'chart-red' },
  { key: 'success_count', label: 'Succeeded', color: 'chart-blue' },
] as const;

const ERROR_RATE = { key: 'error_rate', label: 'Error rate', color: 'chart-red' };

const TIME_SERIES = [
  { key: 'min_execution_time', label: 'Min', color: 'chart-gray', dashed: true },
  { key: 'avg_execution_time', label: 'Avg', color: 'chart-blue' },
  { key: 'p95_execution_time', label: 'p95', color: 'chart-violet' },
  { key: 'p99_execution_time', label: 'p99', color: 'chart-amber' },
  { key: 'max_execution_time', label: 'Max', color: 'chart-red', dashed: true },
] as const;

type TimeSeries = (typeof TIME_SERIES)[number];

const isPercentile = ({ key }: TimeSeries) => key === 'p95_execution_time' || key === 'p99_execution_time';

/** The buckets that the charts show. */
interface Buckets {
  readonly rows: readonly Row[];
  readonly starts: readonly number[];
  readonly bucketSeconds: number;
  /** Several buckets of the endpoint are merged into one. */
  readonly isMerged: boolean;
  /** The start of the first shown bucket, before merging, in Unix milliseconds. */
  readonly rangeStartMs: number;
}

export class FunctionCharts {
  readonly element: HTMLElement;
  readonly #counts: TimeChart;
  readonly #errorRate: TimeChart;
  readonly #times: TimeChart;

  constructor(actions: Pick<ChartOptions, 'onSelectRange' | 'onOpenBucket'>) {
    const common = { ...actions, cursorGroup: 'functions' };
    this.#counts = new TimeChart('Invocations', {
      ...common,
      label: 'Invocations and errors over time, stacked bars',
      type: 'stacked-bars',
      formatValue: formatCount,
      formatTick: formatCompact,
    });
    this.#errorRate = new TimeChart('Error rate', {
      ...common,
      label: 'Share of invocations with errors over time, line in percent',
      type: 'lines',
      formatValue: formatPercent,
      formatTick: formatPercent,
      height: 'low',
    });
    this.#times = new TimeChart('Execution time', {
      ...common,
      label: 'Execution times over time, lines in milliseconds',
      type: 'lines',
      formatValue: formatMilliseconds,
      formatTick: formatMilliseconds,
      height: 'tall',
    });
    this.element = h(
      'div',
      { class: 'charts' },
      h('div', { class: 'stack' }, this.#counts.element, this.#errorRate.element),
      this.#times.element,
    );
  }

  render(result: QueryResult, interval: Interval): void {
    const buckets = findBuckets(result, interval);
    const { rows, starts, bucketSeconds, rangeStartMs, isMerged } = buckets;
    const rowsByStart = new Map(rows.map(row => [readStart(row), row]));
    const bucketRows = starts.map(start => rowsByStart.get(start));
    const common = { starts, bucketSeconds, rangeStartMs, rangeEndMs: result.ranAt, ranAtMs: result.ranAt };
    const countSeries = COUNT_SERIES.map(series => ({
      ...series,
      values: bucketRows.map(row => readNumber(row, series.key)),
    }));
    this.#counts.render({ ...common, series: countSeries }, createCountEntries(rows));
    const rates = bucketRows.map(readErrorRate);
    this.#errorRate.render({ ...common, series: [{ ...ERROR_RATE, values: rates }] }, [
      createRateEntry(rows),
    ]);
    const timeSeries = TIME_SERIES.filter(series => !isMerged || !isPercentile(series));
    this.#times.render(
      {
        ...common,
        series: timeSeries.map(series => ({
          ...series,
          values: bucketRows.map(row => (row?.[series.key] ?? null) as number | null),
        })),
      },
      timeSeries.map(series => createTimeEntry(series, buckets)),
      isMerged ? describeMerging(interval, bucketSeconds) : '',
    );
  }

  close(): void {
    for (const chart of [this.#counts, this.#errorRate, this.#times]) chart.close();
  }
}

/** The values of the endpoint, without merging. */
export function createFunctionTable(rows: readonly Row[]): HTMLElement {
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

function findBuckets({ rows, ranAt }: QueryResult, interval: Interval): Buckets {
  const starts = listStarts(interval, ranAt, rows.map(readStart));
  const bucketSeconds = chooseMergedSeconds(interval.bucketSeconds, starts.length);
  const isMerged = bucketSeconds !== interval.bucketSeconds;
  return {
    rows: (isMerged ? mergeRows(rows, bucketSeconds) : rows).map(addSuccessCount),
    starts: isMerged ? [...new Set(starts.map(start => floorTo(start, bucketSeconds)))] : starts,
    bucketSeconds,
    isMerged,
    // The first bucket is complete, because the endpoint extends the window to the start of that bucket.
    rangeStartMs: (starts[0] ?? 0) * 1000,
  };
}

function describeMerging(interval: Interval, bucketSeconds: number): string {
  const merged = formatPeriod(bucketSeconds);
  const exact = formatPeriod(interval.bucketSeconds);
  const maxMinutes = Math.floor((MAX_BUCKETS * interval.bucketSeconds) / 60);
  return `Each point is ${merged}. The percentiles p95 and p99 are known per ${exact} and cannot be merged: zoom in to ${maxMinutes} minutes or less to see them.`;
}

function createCountEntries(rows: readonly Row[]): LegendEntry[] {
  const descriptions = {
    error_count: 'status 400 or higher',
    success_count: `of ${formatCount(sum(rows, 'count'))} invocations`,
  };
  return COUNT_SERIES.map(series => ({
    ...series,
    value: formatCount(sum(rows, series.key)),
    description: descriptions[series.key],
  })).reverse();
}

function createRateEntry(rows: readonly Row[]): LegendEntry {
  const [count, errors] = [sum(rows, 'count'), sum(rows, 'error_count')];
  return {
    ...ERROR_RATE,
    value: count === 0 ? '–' : formatPercent(errors / count),
    description: 'of all invocations shown',
  };
}

/** A percentile of all buckets cannot be calculated from those of each bucket, so the entry shows the highest of them. */
function createTimeEntry(series: TimeSeries, { rows, bucketSeconds }: Buckets): LegendEntry {
  const { key, label } = series;
  const [value, description] = summarize(key, rows);
  if (value === undefined) return { ...series, value: '–', description };
  if (!isPercentile(series)) return { ...series, value: formatMilliseconds(value), description };
  const peak = rows.find(row => row[key] === value);
  const at = peak === undefined ? '' : formatStart(readStart(peak) * 1000, bucketSeconds);
  return {
    ...series,
    value: `up to ${formatMilliseconds(value)}`,
    description: `highest ${label} of one ${formatPeriod(bucketSeconds)}, ${at}`,
  };
}

/** Short, because the axis of the chart has the rest. */
function formatStart(ms: number, bucketSeconds: number): string {
  if (bucketSeconds >= 86_400) return formatDay(ms);
  return `at ${bucketSeconds < 60 ? formatTimeSeconds(ms) : formatTime(ms)}`;
}

function summarize(key: string, rows: readonly Row[]): [number | undefined, string] {
  if (key === 'avg_execution_time') return [weightedMean(rows), 'mean, weighted by invocations'];
  if (key === 'min_execution_time') return [findExtreme(rows, key, Math.min), 'shortest'];
  return [findExtreme(rows, key, Math.max), 'longest'];
}

function addSuccessCount(row: Row): Row {
  return { ...row, success_count: readNumber(row, 'count') - readNumber(row, 'error_count') };
}

/** A gap if there are no invocations. */
function readErrorRate(row: Row | undefined): number | null {
  const count = readNumber(row, 'count');
  return count === 0 ? null : readNumber(row, 'error_count') / count;
}
