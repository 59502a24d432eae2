// Formats rows as a table for a terminal.
import { escapeForTerminal } from './terminal.ts';

const MAX_CELL_WIDTH = 80;

/** Numeric columns are aligned at their decimal points. */
export function formatTable(
  columnNames: readonly string[],
  rows: readonly (readonly string[])[],
  isNumeric: (column: number) => boolean = () => false,
): string {
  if (rows.length === 0) return 'no rows\n';
  const columns = columnNames.map((name, column) => {
    const cells = rows.map(row => sanitizeCell(row[column] ?? ''));
    return isNumeric(column)
      ? alignRight([sanitizeCell(name), ...alignPoints(cells)])
      : alignLeft([sanitizeCell(name), ...cells]);
  });
  const [header = '', ...body] = [columnNames, ...rows].map((_, row) =>
    columns
      .map(cells => cells[row])
      .join('  ')
      .trimEnd(),
  );
  const separator = columns.map(([name = '']) => '-'.repeat(name.length)).join('  ');
  return [header, separator, ...body, `${rows.length} ${rows.length === 1 ? 'row' : 'rows'}`, ''].join('\n');
}

function alignLeft(cells: readonly string[]): string[] {
  const width = widthOf(cells);
  return cells.map(cell => cell.padEnd(width));
}

function alignRight(cells: readonly string[]): string[] {
  const width = widthOf(cells);
  return cells.map(cell => cell.padStart(width));
}

/** Pads numbers at the end, so that their decimal points are below each other when the numbers are aligned right. */
function alignPoints(numbers: readonly string[]): string[] {
  const fractions = numbers.map(number => /\..*$/.exec(number)?.[0] ?? '');
  const width = widthOf(fractions);
  return numbers.map((number, index) => number + ' '.repeat(width - (fractions[index]?.length ?? 0)));
}

function widthOf(cells: readonly string[]): number {
  return cells.reduce((width, cell) => Math.max(width, cell.length), 0);
}

/** Joins the lines of a cell, escapes characters that could control the terminal, and truncates a long cell. */
function sanitizeCell(cell: string): string {
  const line = escapeForTerminal(cell.replace(/[\t\n\r]+/g, ' '));
  return line.length > MAX_CELL_WIDTH ? `${line.slice(0, MAX_CELL_WIDTH - 1)}…` : line;
}
