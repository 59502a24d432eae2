// Encodes rows as JSON, NDJSON or CSV, with the columns in the order of the endpoint's definition.
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Cell, Column, ColumnType } from '../store/store.ts';

type Rows = readonly (readonly Cell[])[];

export const RESULT_FORMATS = ['json', 'ndjson', 'csv'] as const;
export type ResultFormat = (typeof RESULT_FORMATS)[number];

export function encodeRows(columns: readonly Column[], rows: Rows, format: ResultFormat): string {
  switch (format) {
    case 'json':
      return `{"result":[${encodeObjects(columns, rows).join(',')}]}`;
    case 'ndjson':
      return encodeObjects(columns, rows)
        .map(object => `${object}\n`)
        .join('');
    case 'csv':
      return encodeCsv(columns, rows);
  }
}

/** Concatenates strings: that is faster than building objects, and it copies stored JSON unchanged. */
function encodeObjects(columns: readonly Column[], rows: Rows): string[] {
  const fields = columns.map(({ name, type }, index) => ({
    prefix: `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`,
    encode: JSON_ENCODERS[type],
  }));
  return rows.map(row => {
    let object = '';
    let index = 0;
    for (const { prefix, encode } of fields) {
      const cell = row[index++] ?? null;
      object += prefix + (cell === null ? 'null' : encode(cell));
    }
    return `${object}}`;
  });
}

const JSON_ENCODERS: Record<ColumnType, (cell: NonNullable<Cell>) => string> = {
  text: cell => JSON.stringify(cell),
  json: cell => String(cell),
  integer: cell => String(cell),
  number: cell => String(cell),
  unix_microseconds: cell => String(cell),
  utc_datetime: cell => `"${formatTimestamp(BigInt(cell))}"`,
};

/** RFC 4180: a header line, CRLF line ends, quotes only if a value needs them. Null is an empty field. */
function encodeCsv(columns: readonly Column[], rows: Rows): string {
  const lines = [columns.map(column => column.name), ...rows.map(row => formatCells(columns, row))];
  return lines.map(line => `${line.map(quoteCsv).join(',')}\r\n`).join('');
}

function quoteCsv(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Formats the cells of a row as plain text, for CSV and for tables in a terminal. */
export function formatCells(columns: readonly Column[], row: readonly Cell[]): string[] {
  return columns.map(({ type }, index) => {
    const cell = row[index] ?? null;
    if (cell === null) return '';
    return type === 'utc_datetime' ? formatTimestamp(BigInt(cell)) : String(cell);
  });
}
