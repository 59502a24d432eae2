// The table and charts of an endpoint that has no specialized view. The column types determine how values are shown.
import type { Column, Endpoint } from '../api/catalog.ts';
import type { QueryResult, Row } from '../api/client.ts';
import { type ChartData, type ChartSeries, groupByMagnitude } from '../chart/chart-data.ts';
import type { LegendEntry } from '../chart/legend.ts';
import {
  type Cell,
  createNumberCell,
  createSortableTable,
  createTimeCell,
  formatCell,
  type TableSort,
} from '../components/data-table.ts';
import { formatCount, formatDecimal } from '../format.ts';
import { formatCsv } from '../logs/csv.ts';
import type { Span } from '../time-range.ts';

const COLORS = ['chart-blue', 'chart-amber', 'chart-violet', 'chart-teal', 'chart-red', 'chart-gray'];

const isTime = ({ type }: Column) => type === 'unix_microseconds' || type === 'utc_datetime';
const isNumber = ({ type }: Column) => type === 'integer' || type === 'number';

export function createRowTable(
  { name, columns }: Endpoint,
  rows: readonly Row[],
  sort: TableSort,
): HTMLElement {
  return createSortableTable(
    `Rows of ${name}`,
    columns.map(column => ({ heading: column.name, title: column.description, numeric: isNumber(column) })),
    rows.map(row => columns.map(column => createCell(column, row[column.name]))),
    rows.map(row => columns.map(column => row[column.name])),
    sort,
  );
}

export function toRowCsv({ columns }: Endpoint, rows: readonly Row[]): string {
  const names = columns.map(({ name }) => name);
  const toText = (value: unknown) => (value === null || value === undefined ? '' : formatCell(value));
  return formatCsv([names, ...rows.map(row => names.map(name => toText(row[name])))]);
}

export interface ChartContent {
  readonly title: string;
  readonly data: ChartData;
  readonly entries: LegendEntry[];
}

/**
 * Empty if there is no time column or no number column, or if fewer than two rows have a time. If rows have the same time, there is a
 * line for each value of the first text column; if that does not tell them apart either, for each number column.
 */
export function createChartContents(
  { columns }: Endpoint,
  { rows, ranAt }: QueryResult,
  span: Span | undefined,
): ChartContent[] {
  const timeColumn = columns.find(isTime);
  if (timeColumn === undefined) return [];
  const allPoints = rows
    .map(row => ({ row, micros: parseMicros(timeColumn, row[timeColumn.name]) }))
    .filter(({ micros }) => micros !== undefined)
    .sort((a, b) => Number(a.micros) - Number(b.micros));
  const toStart = ({ micros }: Point) => Number(micros) / 1e6;
  const allStarts = [...new Set(allPoints.map(toStart))];
  if (allStarts.length < 2) return [];
  const starts = keepInSpan(allStarts, span);
  const shown = new Set(starts);
  const points = allPoints.filter(point => shown.has(toStart(point)));
  const isUnique = allStarts.length === allPoints.length;
  const byText = isUnique ? undefined : toTextLines(columns, points, starts);
  const lines = byText?.slice(0, COLORS.length) ?? toNumberLines(columns, points);
  const isCut = byText !== undefined && byText.length > lines.length;
  const note = isCut ? ` (${lines.length} of ${formatCount(byText.length)})` : '';
  const xs = byText === undefined ? points.map(toStart) : starts;
  return groupByMagnitude(lines).map(series => ({
    title: `${series.map(({ label }) => label).join(', ')}${note}`,
    data: { starts: xs, bucketSeconds: 0, rangeStartMs: 0, rangeEndMs: ranAt, ranAtMs: ranAt, series },
    entries: series.map(({ key, label, color, values, column }) => ({
      key,
      label,
      color,
      value: formatLatest(values),
      description: `latest · ${column.description}`,
    })),
  }));
}

/** The points in time that are within the range. All of them if none is. */
function keepInSpan(starts: readonly number[], span: Span | undefined): readonly number[] {
  if (span === undefined) return starts;
  const inSpan = starts.filter(start => start * 1000 >= span.startMs && start * 1000 < span.endMs);
  return inSpan.length === 0 ? starts : inSpan;
}

interface Point {
  readonly row: Row;
  readonly micros: number | undefined;
}

interface Line extends ChartSeries {
  readonly column: Column;
}

const createLine = (column: Column, label: string, i: number, values: (number | null)[]): Line => ({
  ...{ column, key: label, label, values },
  color: COLORS[i % COLORS.length] ?? '',
});

function toNumberLines(columns: readonly Column[], points: readonly Point[]): Line[] {
  return columns.filter(isNumber).map((column, i) =>
    createLine(
      column,
      column.name,
      i,
      points.map(({ row }) => toNumber(row[column.name])),
    ),
  );
}

/**
 * One line for each value of the first text column, the most frequent first, with the values of the first number column. Undefined if
 * there is no text column, or if two rows have the same time and text.
 */
function toTextLines(
  columns: readonly Column[],
  points: readonly Point[],
  starts: readonly number[],
): Line[] | undefined {
  const text = columns.find(column => !isTime(column) && !isNumber(column));
  const number = columns.find(isNumber);
  if (text === undefined || number === undefined) return undefined;
  const byText = new Map<string, Map<number, number | null>>();
  for (const { row, micros } of points) {
    const name = formatCell(row[text.name]);
    const line = byText.get(name) ?? new Map<number, number | null>();
    if (line.has(Number(micros) / 1e6)) return undefined;
    byText.set(name, line.set(Number(micros) / 1e6, toNumber(row[number.name])));
  }
  const longest = [...byText].sort(([, a], [, b]) => b.size - a.size);
  return longest.map(([name, line], i) =>
    createLine(
      number,
      name,
      i,
      starts.map(start => line.get(start) ?? null),
    ),
  );
}

function formatLatest(values: readonly (number | null)[]): string {
  const latest = values.findLast(value => value !== null);
  return latest === undefined || latest === null ? '–' : formatDecimal(latest);
}

function createCell(column: Column, value: unknown): Cell {
  if (value === null || value === undefined) return '–';
  if (isNumber(column)) return createNumberCell(value);
  const micros = isTime(column) ? parseMicros(column, value) : undefined;
  return micros === undefined ? formatCell(value) : createTimeCell(micros);
}

function parseMicros({ type }: Column, value: unknown): number | undefined {
  const micros =
    type === 'unix_microseconds' ? Number(value ?? Number.NaN) : Date.parse(String(value)) * 1000;
  return Number.isNaN(micros) ? undefined : micros;
}

function toNumber(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
