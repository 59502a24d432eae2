// The table and charts of an endpoint that has no specialized view. The column types determine how values are shown.
import type { Column, Endpoint } from '../api/catalog.ts';
import type { QueryResult, Row } from '../api/client.ts';
import { type ChartData, groupByMagnitude, type TimeRange } from '../chart/chart-data.ts';
import type { LegendEntry } from '../chart/legend.ts';
import { keepZoomed } from '../chart/zoom.ts';
import {
  type Cell,
  createNumberCell,
  createTable,
  createTimeCell,
  formatCell,
} from '../components/data-table.ts';
import { formatDecimal } from '../format.ts';

const COLORS = ['chart-blue', 'chart-amber', 'chart-violet', 'chart-teal', 'chart-red', 'chart-gray'];

const isTime = ({ type }: Column) => type === 'unix_microseconds' || type === 'utc_datetime';
const isNumber = ({ type }: Column) => type === 'integer' || type === 'number';

export function createRowTable({ name, columns }: Endpoint, rows: readonly Row[]): HTMLElement {
  return createTable(
    `Rows of ${name}`,
    columns.map(column => ({ heading: column.name, title: column.description, numeric: isNumber(column) })),
    rows.map(row => columns.map(column => createCell(column, row[column.name]))),
  );
}

export interface ChartContent {
  readonly data: ChartData;
  readonly entries: LegendEntry[];
}

/** Empty if there is no time column or no number column, if fewer than two rows have a time, or if two rows have the same time. */
export function createChartContents(
  { columns }: Endpoint,
  { rows, ranAt }: QueryResult,
  zoom: TimeRange | undefined,
): ChartContent[] {
  const timeColumn = columns.find(isTime);
  if (timeColumn === undefined) return [];
  const allPoints = rows
    .map(row => ({ row, micros: parseMicros(timeColumn, row[timeColumn.name]) }))
    .filter(({ micros }) => micros !== undefined)
    .sort((a, b) => Number(a.micros) - Number(b.micros));
  const allStarts = allPoints.map(({ micros }) => Number(micros) / 1e6);
  if (allStarts.length < 2 || new Set(allStarts).size < allStarts.length) return [];
  const starts = keepZoomed(allStarts, zoom);
  const shown = new Set(starts);
  const points = allPoints.filter((_, i) => shown.has(allStarts[i] ?? Number.NaN));
  const lines = columns.filter(isNumber).map((column, i) => ({
    column,
    key: column.name,
    label: column.name,
    color: COLORS[i % COLORS.length] ?? '',
    values: points.map(({ row }) => toNumber(row[column.name])),
  }));
  return groupByMagnitude(lines).map(series => ({
    data: { starts, bucketSeconds: 0, rangeStartMs: 0, rangeEndMs: ranAt, ranAtMs: ranAt, series },
    entries: series.map(({ key, label, color, values, column }) => ({
      key,
      label,
      color,
      value: formatLatest(values),
      description: `latest · ${column.description}`,
    })),
  }));
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
