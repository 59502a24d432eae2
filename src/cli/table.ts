// Formats rows as a table for a terminal.

const MAX_CELL_WIDTH = 80;

export function formatTable(names: readonly string[], rows: readonly (readonly string[])[]): string {
  if (rows.length === 0) return 'no rows\n';
  const lines = [names, ...rows].map(row => row.map(shorten));
  const widths = names.map((_, column) => Math.max(...lines.map(line => line[column]?.length ?? 0)));
  const [header = [], ...body] = lines.map(line => joinCells(line, widths));
  const separator = widths.map(width => '-'.repeat(width)).join('  ');
  return [header, separator, ...body, `${rows.length} ${rows.length === 1 ? 'row' : 'rows'}`, ''].join('\n');
}

function joinCells(cells: readonly string[], widths: readonly number[]): string {
  return cells
    .map((cell, column) => cell.padEnd(widths[column] ?? 0))
    .join('  ')
    .trimEnd();
}

/** Control characters would break the table or the terminal. */
function shorten(cell: string): string {
  const line = cell.replace(/\p{Cc}+/gu, ' ');
  return line.length > MAX_CELL_WIDTH ? `${line.slice(0, MAX_CELL_WIDTH - 1)}…` : line;
}
