// The histogram above the list: the number of matching records over time, by status class or level. Dragging or clicking in it
// narrows the time range.
import type { QueryResult, Row } from '../api/client.ts';
import type { ChartData, ChartSeries, TimeRange } from '../chart/chart-data.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { CollapsibleTable, createNumberCell, createTable, createTimeCell } from '../components/data-table.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatRecordCount } from '../format.ts';
import { findSeverity, type Severity } from './kinds.ts';
import { readMicros } from './record-fields.ts';

export class Histogram {
  readonly element: HTMLElement;
  readonly #chart: TimeChart;
  readonly #table = new CollapsibleTable('Counts as a table');
  readonly #message = h('p', { class: 'muted histogram-message', role: 'status', hidden: true });

  constructor(onSelectRange: (range: TimeRange) => void) {
    this.#chart = new TimeChart('', {
      label: 'Records over time, stacked bars',
      type: 'stacked-bars',
      formatValue: formatCount,
      formatTick: formatCompact,
      onSelectRange,
      onOpenBucket: onSelectRange,
    });
    this.element = h('div', { class: 'histogram' }, this.#chart.element, this.#message, this.#table.element);
  }

  /** The range is in Unix milliseconds. */
  render(result: QueryResult, range: { readonly start: number; readonly end: number }): void {
    const data = toChartData(result, range);
    this.#setMessage('');
    this.#chart.setTitle(formatRecordCount(sumCounts(result.rows)));
    this.#chart.render(
      data,
      data.series.map(({ key, label, color, values }) => ({
        key,
        label,
        color,
        value: formatCount(values.reduce<number>((sum, value) => sum + (value ?? 0), 0)),
        description: '',
      })),
    );
    this.#table.render(() => createCountTable(result.rows));
  }

  showError(message: string): void {
    this.#setMessage(`There is no histogram: ${message}`);
  }

  /** Replaces the chart; an empty message shows it again. */
  #setMessage(message: string): void {
    const hasMessage = message !== '';
    this.element.classList.toggle('histogram-failed', hasMessage);
    this.#chart.element.hidden = hasMessage;
    this.#table.element.hidden = hasMessage;
    this.#message.hidden = !hasMessage;
    this.#message.textContent = message;
  }

  close(): void {
    this.#chart.close();
  }
}

export function sumCounts(rows: readonly Row[]): number {
  return rows.reduce((sum, row) => sum + Number(row['count']), 0);
}

/** A safety limit: the server chooses the size of the buckets so that there are at most 120. */
const MAX_BUCKETS = 200;

function toChartData(
  { rows, ranAt }: QueryResult,
  range: { readonly start: number; readonly end: number },
): ChartData {
  const bucketSeconds = Number(rows[0]?.['bucket_seconds'] ?? 0);
  const starts = listStarts(rows, bucketSeconds, range);
  const first = starts[0] ?? 0;
  const categories = [...new Set(rows.map(row => String(row['category'])))].sort(compareCategories);
  const series = categories.map((category): ChartSeries => {
    const values = starts.map(() => 0);
    for (const row of rows) {
      const index = Math.round((readMicros(row) / 1e6 - first) / bucketSeconds);
      if (row['category'] === category) values[index] = (values[index] ?? 0) + Number(row['count']);
    }
    return { key: category, label: category, color: colorOf(category), values };
  });
  return { starts, bucketSeconds, rangeStartMs: range.start, rangeEndMs: range.end, ranAtMs: ranAt, series };
}

/** The starts of all buckets of the range, in Unix seconds. The API returns only those that have records. */
function listStarts(
  rows: readonly Row[],
  bucketSeconds: number,
  range: { readonly start: number; readonly end: number },
): number[] {
  const [firstRow, lastRow] = [rows[0], rows.at(-1)];
  if (firstRow === undefined || lastRow === undefined || bucketSeconds <= 0) return [];
  const anchor = readMicros(firstRow) / 1e6;
  const last = readMicros(lastRow) / 1e6;
  const before = Math.max(0, Math.ceil((anchor - range.start / 1000) / bucketSeconds));
  // A bucket that starts at the end of the range is not part of it.
  const after = Math.max(0, Math.ceil(((range.end - 1) / 1000 - last) / bucketSeconds) - 1);
  const between = Math.round((last - anchor) / bucketSeconds);
  const count = Math.min(before + between + after + 1, MAX_BUCKETS);
  return Array.from({ length: count }, (_, i) => anchor + (i - before) * bucketSeconds);
}

const SEVERITY_COLORS: Record<Severity, string> = {
  error: 'chart-red',
  warning: 'chart-amber',
  info: 'chart-blue',
  debug: 'chart-gray',
  other: 'chart-teal',
};

const STATUS_COLORS: Readonly<Record<string, string>> = {
  '5xx': 'chart-red',
  '4xx': 'chart-amber',
  '3xx': 'chart-violet',
  '2xx': 'chart-blue',
  '1xx': 'chart-teal',
  other: 'chart-gray',
};

function colorOf(category: string): string {
  return STATUS_COLORS[category] ?? SEVERITY_COLORS[findSeverity(category)];
}

const SEVERITY_ORDER: readonly Severity[] = ['error', 'warning', 'info', 'debug', 'other'];

/** The worst first: errors are at the bottom of the bars, where they are easy to compare. */
function compareCategories(a: string, b: string): number {
  const rank = (category: string) => {
    if (/^\dxx$/.test(category)) return 9 - Number(category.charAt(0));
    return category === 'other' ? 99 : 10 + SEVERITY_ORDER.indexOf(findSeverity(category));
  };
  return rank(a) - rank(b) || (a < b ? -1 : 1);
}

function createCountTable(rows: readonly Row[]): HTMLElement {
  return createTable(
    'Records by time and category',
    [{ heading: 'Bucket start' }, { heading: 'Category' }, { heading: 'Records', numeric: true }],
    rows.map(row => [
      createTimeCell(readMicros(row)),
      String(row['category']),
      createNumberCell(row['count']),
    ]),
  );
}
