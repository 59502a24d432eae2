// Output for a terminal: escaped text, tables, and progress bars.
import type { Observe } from '../observe/event.ts';
import type { Io, Output } from './io.ts';

// Text from outside (log records, file names, messages of a server) is escaped: control characters and characters that change the
// direction of text could otherwise control the terminal or hide what is printed.

/** C0 and C1 control characters, DEL, line separators, and characters that change the direction of text. */
const UNSAFE = /[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

/** The same without tabs and line ends. */
const UNSAFE_IN_LINES = /(?![\t\n]|\r\n)[\p{Cc}\p{Bidi_Control}\u2028\u2029]/gu;

const SHORT_ESCAPES: Readonly<Record<string, string>> = { '\n': '\\n', '\r': '\\r', '\t': '\\t' };

/** Escapes a text that has to stay on one line. */
export function escapeForTerminal(text: string): string {
  return text.replace(UNSAFE, escapeCharacter);
}

/** Escapes a text of several lines. JSON text keeps its value: the escapes, such as \u009b, mean the same in a JSON string. */
export function escapeLinesForTerminal(text: string): string {
  return text.replace(UNSAFE_IN_LINES, escapeCharacter);
}

function escapeCharacter(character: string): string {
  return SHORT_ESCAPES[character] ?? `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`;
}

const MAX_CELL_WIDTH = 80;

/** Numeric columns are aligned right. */
export function formatTable(
  columnNames: readonly string[],
  rows: readonly (readonly string[])[],
  isNumeric: (column: number) => boolean = () => false,
): string {
  if (rows.length === 0) return 'no rows\n';
  const columns = columnNames.map((name, column) => {
    const cells = [name, ...rows.map(row => row[column] ?? '')].map(sanitizeCell);
    const width = cells.reduce((widest, cell) => Math.max(widest, cell.length), 0);
    return cells.map(cell => (isNumeric(column) ? cell.padStart(width) : cell.padEnd(width)));
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

/** Joins the lines of a cell, escapes characters that could control the terminal, and truncates a long cell. */
function sanitizeCell(cell: string): string {
  const line = escapeForTerminal(cell.replace(/[\t\n\r]+/g, ' '));
  return line.length > MAX_CELL_WIDTH ? `${line.slice(0, MAX_CELL_WIDTH - 1)}…` : line;
}

const BAR_WIDTH = 30;
const REDRAW_INTERVAL_MS = 100;

export interface ProgressBar {
  /** `share` is from 0 to 1, or undefined if the total is not known. */
  update(share: number | undefined, description: string): void;
  /** Removes the bar from the screen. */
  clear(): void;
}

/** Prints nothing if the stream is not a terminal. */
export function createProgressBar(label: string, terminal: Output): ProgressBar {
  let drawnAt = 0;
  return {
    update(share, description) {
      if (!terminal.isTTY || performance.now() - drawnAt < REDRAW_INTERVAL_MS) return;
      drawnAt = performance.now();
      terminal.write(
        `\r\x1b[K${escapeForTerminal(label)} ${share === undefined ? '' : `${drawBar(share)} `}${description}`,
      );
    },
    clear() {
      if (terminal.isTTY && drawnAt > 0) terminal.write('\r\x1b[K');
    },
  };
}

function drawBar(share: number): string {
  const filled = Math.round(Math.min(share, 1) * BAR_WIDTH);
  return `[${'#'.repeat(filled)}${'.'.repeat(BAR_WIDTH - filled)}] ${Math.floor(Math.min(share, 1) * 100)}%`;
}

/** Shows the conversion of a store of an earlier release as a progress bar on a terminal. Passes all other events to `log`. */
export function showConversion({ stderr }: Pick<Io, 'stderr'>, log: Observe): Observe {
  if (!stderr.isTTY) return log;
  const bar = createProgressBar('converting the store', stderr);
  return event => {
    if (event.type === 'conversion_progress') return bar.update(event.share, `${event.records} records`);
    bar.clear(); // any other event: the conversion has ended, or its problem is logged
    log(event);
  };
}
