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

export interface Drawing {
  readonly data: ChartData;
  readonly entries: LegendEntry[];
}

/** None where the rows do not run along time: no time column, no numbers, or several rows at one moment. */
export function chartsOf({ columns }: Endpoint, { rows, askedAt }: Answer): Drawing[] {
  const time = columns.find(isTime);
  if (time === undefined) return [];
  const moments = rows
    .map(row => ({ row, at: toMicros(time, row[time.name]) }))
    .filter(({ at }) => at !== undefined)
    .sort((a, b) => Number(a.at) - Number(b.at));
  const starts = moments.map(({ at }) => Number(at) / 1e6);
  if (starts.length < 2 || new Set(starts).size < starts.length) return [];
  const lines = columns.filter(isNumber).map((column, i) => ({
    column,
    key: column.name,
    label: column.name,
    color: COLORS[i % COLORS.length] ?? '',
    values: moments.map(({ row }) => toNumber(row[column.name])),
  }));
  return bySize(lines).map(series => ({
    data: { starts, bucketSeconds: 0, countedFrom: 0, countedTo: askedAt, series },
    entries: series.map(({ key, label, color, values, column }) => ({
      key,
      label,
      color,
      value: formatExact(values.findLast(value => value !== null) ?? 0),
      meaning: `latest · ${column.description}`,
    })),
  }));
}

/** Lines that would lie flat beside much larger ones get a chart of their own. */
function bySize<Line extends { readonly values: readonly (number | null)[] }>(
  lines: readonly Line[],
): Line[][] {
  const groups: { highest: number; lines: Line[] }[] = [];
  for (const line of lines) {
    const highest = line.values.reduce<number>((most, value) => Math.max(most, Math.abs(value ?? 0)), 0);
    const group = groups.find(
      each => highest === 0 || each.highest === 0 || Math.abs(Math.log10(each.highest / highest)) < 1.3,
    );
    if (group === undefined) groups.push({ highest, lines: [line] });
    else group.lines.push(line);
  }
  return groups.map(group => group.lines);
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
