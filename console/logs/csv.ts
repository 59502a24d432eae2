// Log records and other rows as a CSV file (RFC 4180), for spreadsheets.
import type { Row } from '../api/client.ts';
import { formatJson } from '../api/exact-json.ts';
import { microsToIso } from '../format.ts';
import type { LogColumn } from './kinds.ts';
import { readMicros } from './record-fields.ts';

export function toCsv(records: readonly Row[], listColumns: readonly LogColumn[]): string {
  const columns = listColumns.filter(({ name }) => name !== 'kind'); // every file has it
  const names = ['timestamp', 'id', 'kind', ...columns.map(({ name }) => name), 'event_message', 'metadata'];
  const lines = records.map(record => [
    microsToIso(readMicros(record)),
    ...[record['id'], record['kind']].map(String),
    ...columns.map(column => column.read(record) ?? ''),
    String(record['event_message'] ?? ''),
    formatJson(record['metadata'], 0),
  ]);
  return formatCsv([names, ...lines]);
}

export function formatCsv(lines: readonly (readonly string[])[]): string {
  const text = lines.map(cells => `${cells.map(formatCell).join(',')}\r\n`).join('');
  return `\uFEFF${text}`; // without a byte order mark, spreadsheets do not read it as UTF-8
}

/**
 * Puts a single quote before a text that a spreadsheet would run as a formula. Otherwise, anyone who can send a log record could
 * run a formula on the computer of the person who opens the file. A negative number is no formula.
 */
function formatCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) && !/^-\d+(\.\d+)?(e[+-]?\d+)?$/i.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function downloadText(name: string, type: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement('a');
  link.href = url;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000); // the browser may still read it
}
