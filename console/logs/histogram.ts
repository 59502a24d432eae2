// The histogram above the list: the number of matching records over time, by status class, level or log kind. Dragging
// narrows the time range, and a click on a bar shows its records.
import type { QueryResult, Row } from '../api/client.ts';
import type { ChartData, ChartOptions, ChartSeries, TimeRange } from '../chart/chart-data.ts';
import { TimeChart } from '../chart/time-chart.ts';
import { CollapsibleTable, createNumberCell, createTable, createTimeCell } from '../components/data-table.ts';
import { h } from '../dom.ts';
import { formatCompact, formatCount, formatRecordCount } from '../format.ts';
import type { Span } from '../time-range.ts';
import { ALL_KINDS, findKind, findSeverity, listFields, type Severity } from './kinds.ts';
import { readMicros } from './record-fields.ts';
import type { Term } from './search-expression.ts';

export interface HistogramOptions {
  onZoom(range: TimeRange): void;
  readonly onOpenBucket: NonNullable<ChartOptions['onOpenBucket']>;
  title?(total: number): string;
}

export class Histogram {
  readonly element: HTMLElement;
  readonly #chart: TimeChart;
  readonly #table = new CollapsibleTable('Counts as a table');
  readonly #message = h('p', { class: 'muted histogram-message', role: 'status', hidden: true });

  readonly #toTitle: (total: number) => string;

  constructor({ onZoom, onOpenBucket, title = formatRecordCount }: HistogramOptions) {
    this.#toTitle = title;
    this.#chart = new TimeChart('', {
      label: 'Records over time, stacked bars',
      type: 'stacked-bars',
      formatValue: formatCount,
      formatTick: formatCompact,
      onSelectRange: onZoom,
      onOpenBucket,
    });
    this.element = h('div', { class: 'histogram' }, this.#chart.element, this.#message, this.#table.element);
  }

  render(result: QueryResult, span: Span): void {
    // Without a row, the size of the buckets is unknown.
    this.#setMessage(result.rows.length === 0 ? this.#toTitle(0) : '');
    const data = toChartData(result, span);
    this.#chart.setTitle(this.#toTitle(sumCounts(result.rows)));
    const isCut = result.clipped.includes('row-limit');
    this.#chart.render(
      data,
      data.series.map(({ key, label, color, values }) => ({
        key,
        label,
        color,
        value: formatCount(values.reduce<number>((sum, value) => sum + (value ?? 0), 0)),
        description: '',
      })),
      isCut ? `Only the first ${formatCount(result.rows.length)} counts are shown.` : '',
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

function toChartData({ rows, ranAt }: QueryResult, span: Span): ChartData {
  const bucketSeconds = Number(rows[0]?.['bucket_seconds'] ?? 0);
  const starts = listStarts(rows, bucketSeconds, span);
  const first = starts[0] ?? 0;
  const categories = [...new Set(rows.map(row => String(row['category'])))].sort(compareCategories);
  const series = categories.map((category): ChartSeries => {
    const values = starts.map(() => 0);
    for (const row of rows) {
      const index = Math.round((readMicros(row) / 1e6 - first) / bucketSeconds);
      if (row['category'] === category) values[index] = (values[index] ?? 0) + Number(row['count']);
    }
    return { key: category, label: findKind(category).title, color: colorOf(category), values };
  });
  const [rangeStartMs, rangeEndMs] = [span.startMs, Math.min(span.endMs, ranAt)];
  return { starts, bucketSeconds, rangeStartMs, rangeEndMs, ranAtMs: ranAt, series };
}

/**
 * The starts of all buckets of the range, in Unix seconds. The API returns only those that have records. A range without a start
 * begins with the first of them.
 */
function listStarts(rows: readonly Row[], bucketSeconds: number, { startMs, endMs }: Span): number[] {
  const [firstRow, lastRow] = [rows[0], rows.at(-1)];
  if (firstRow === undefined || lastRow === undefined || bucketSeconds <= 0) return [];
  const anchor = readMicros(firstRow) / 1e6;
  const last = readMicros(lastRow) / 1e6;
  const before = startMs === 0 ? 0 : Math.max(0, Math.ceil((anchor - startMs / 1000) / bucketSeconds));
  // A bucket that starts at the end of the range is not part of it.
  const after = Math.max(0, Math.ceil(((endMs - 1) / 1000 - last) / bucketSeconds) - 1);
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
  const kind = findKind(category);
  if (kind.columns.length > 0) return kind.color;
  return STATUS_COLORS[category] ?? SEVERITY_COLORS[findSeverity(category)];
}

/** The term of a search expression for a category. The category of a record without a status, or without a level, is `other`. */
export function toCategoryTerm(kindName: string, category: string): Term {
  const field =
    kindName === ALL_KINDS ? 'kind' : listFields(findKind(kindName)).includes('status') ? 'status' : 'level';
  return category === 'other'
    ? { field: 'exists', value: field, isExcluded: true }
    : { field, value: category, isExcluded: false };
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
      findKind(String(row['category'])).title,
      createNumberCell(row['count']),
    ]),
  );
}
