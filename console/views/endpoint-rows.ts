// Rows of which only the catalog knows what they mean: as a table always, as lines where they run along time.
import type { Answer, Row } from '../api/answer.ts';
import type { Column, Endpoint } from '../api/catalog.ts';
import type { LegendEntry } from '../chart/legend.ts';
import type { ChartData } from '../chart/model.ts';
import { formatExact } from '../numbers.ts';
import { type Cell, cellText, makeTable, numberCell, timeCell } from '../parts/data-table.ts';

const COLORS = ['chart-blue', 'chart-amber', 'chart-violet', 'chart-teal', 'chart-red', 'chart-gray'];

const isTime = ({ type }: Column) => type === 'unix_microseconds' || type === 'utc_datetime';
const isNumber = ({ type }: Column) => type === 'integer' || type === 'number';

export function tableOf({ name, columns }: Endpoint, rows: readonly Row[]): HTMLElement {
  return makeTable(
    `Rows of ${name}`,
    columns.map(column => ({ heading: column.name, title: column.description, numeric: isNumber(column) })),
    rows.map(row => columns.map(column => toCell(column, row[column.name]))),
  );
}

/** Undefined where the rows do not run along time: no time column, no numbers, or several rows at one moment. */
export function chartOf(
  { columns }: Endpoint,
  { rows, askedAt }: Answer,
): { data: ChartData; entries: LegendEntry[] } | undefined {
  const time = columns.find(isTime);
  const numbers = columns.filter(isNumber).slice(0, COLORS.length);
  if (time === undefined || numbers.length === 0) return undefined;
  const moments = rows
    .map(row => ({ row, at: toMicros(time, row[time.name]) }))
    .filter(({ at }) => at !== undefined)
    .sort((a, b) => Number(a.at) - Number(b.at));
  const starts = moments.map(({ at }) => Number(at) / 1e6);
  if (starts.length < 2 || new Set(starts).size < starts.length) return undefined;
  const series = numbers.map((column, i) => ({
    key: column.name,
    label: column.name,
    color: COLORS[i] ?? '',
    values: moments.map(({ row }) => toNumber(row[column.name])),
  }));
  const entries = series.map(({ key, label, color, values }, i) => ({
    key,
    label,
    color,
    value: formatExact(values.findLast(value => value !== null) ?? 0),
    meaning: `latest · ${numbers[i]?.description ?? ''}`,
  }));
  return { data: { starts, bucketSeconds: 0, countedFrom: 0, countedTo: askedAt, series }, entries };
}

function toCell(column: Column, value: unknown): Cell {
  if (value === null || value === undefined) return '–';
  if (isNumber(column)) return numberCell(value);
  const micros = isTime(column) ? toMicros(column, value) : undefined;
  return micros === undefined ? cellText(value) : timeCell(micros);
}

function toMicros({ type }: Column, value: unknown): number | undefined {
  const micros =
    type === 'unix_microseconds' ? Number(value ?? Number.NaN) : Date.parse(String(value)) * 1000;
  return Number.isNaN(micros) ? undefined : micros;
}

function toNumber(value: unknown): number | null {
  return typeof value === 'number' ? value : null;
}
