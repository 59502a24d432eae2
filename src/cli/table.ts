// Formats rows as a table for a terminal.
import { escapeForTerminal } from './terminal.ts';

const MAX_CELL_WIDTH = 80;

export function formatTable(columnNames: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return 'no rows\n';
  const sanitizedRows = [columnNames, ...rows].map(cells => cells.map(sanitizeCell));
  const widths = columnNames.map((_, column) =>
    Math.max(...sanitizedRows.map(cells => cells[column]?.length ?? 0)),
  );
  const [header = [], ...body] = sanitizedRows.map(cells => joinCells(cells, widths));
  const separator = widths.map(width => '-'.repeat(width)).join('  ');
  return [header, separator, ...body, `${rows.length} ${rows.length === 1 ? 'row' : 'rows'}`, ''].join('\n');
}

function joinCells(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join('  ')
    .trimEnd();
}

/** Joins the lines of a cell, escapes characters that could control the terminal, and truncates a long cell. */
function sanitizeCell(cell: string): string {
  const line = escapeForTerminal(cell.replace(/[\t\n\r]+/g, ' '));
  return line.length > MAX_CELL_WIDTH ? `${line.slice(0, MAX_CELL_WIDTH - 1)}…` : line;
}
