// Encodes rows as JSON, NDJSON or CSV, with the columns in the order of the endpoint's definition. Encodes in chunks, so that a
// large result does not block the event loop, and stops at a limit in bytes.
import { setImmediate as yieldToEventLoop } from 'node:timers/promises';
import { formatTimestamp } from '../domain/timestamp.ts';
import type { Cell, Column, ColumnType } from '../store/store.ts';

export type Row = readonly Cell[];

/** `csv` protects spreadsheets from formulas in texts; `csv-raw` returns texts unchanged. */
export const RESULT_FORMATS = ['json', 'ndjson', 'csv', 'csv-raw'] as const;
export type ResultFormat = (typeof RESULT_FORMATS)[number];

export interface RowEncoding {
  readonly format: ResultFormat;
  /** Every timestamp becomes an ISO 8601 string, whatever the type of its column. */
  readonly isoTimestamps: boolean;
}

export interface EncodedRows {
  readonly body: Buffer;
  /** How many rows the body has. */
  readonly rowCount: number;
  /** Rows are missing, because the body would exceed the limit. */
  readonly isCut: boolean;
}

/** Characters that are encoded without a pause. Smaller results are encoded at once. */
const CHUNK_CHARACTERS = 128 * 1024;
const MAX_UTF8_BYTES_PER_CHARACTER = 3;

/** Encodes the rows that fit into `maxBytes`, up to the first one that does not. */
export async function encodeRows(
  columns: readonly Column[],
  rows: Iterable<Row>,
  encoding: RowEncoding,
  maxBytes = Number.POSITIVE_INFINITY,
): Promise<EncodedRows> {
  const { start, separator, end, encodeRow } = createEncoder(columns, encoding);
  const chunks: Buffer[] = [];
  let finishedBytes = 0;
  let text = start;
  let isCut = false;
  let rowCount = 0;
  const endChunk = () => {
    const chunk = Buffer.from(text);
    chunks.push(chunk);
    finishedBytes += chunk.length;
    text = '';
  };
  for (const row of rows) {
    const encoded = rowCount === 0 ? encodeRow(row) : separator + encodeRow(row);
    const room = maxBytes - finishedBytes - end.length;
    // Counting bytes takes time, so the first check uses an upper bound.
    if ((text.length + encoded.length) * MAX_UTF8_BYTES_PER_CHARACTER > room) {
      isCut = Buffer.byteLength(text) + Buffer.byteLength(encoded) > room;
      if (isCut) break;
    }
    text += encoded;
    rowCount++;
    if (text.length < CHUNK_CHARACTERS) continue;
    endChunk();
    await yieldToEventLoop();
  }
  text += end;
  endChunk();
  const [only] = chunks;
  return { body: chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks), rowCount, isCut };
}

/** A body is `start`, the rows with `separator` between them, and `end`, which is ASCII: its length is its size in bytes. */
interface Encoder {
  readonly start: string;
  readonly separator: string;
  readonly end: string;
  readonly encodeRow: (row: Row) => string;
}

function createEncoder(columns: readonly Column[], { format, isoTimestamps }: RowEncoding): Encoder {
  switch (format) {
    case 'json':
      return {
        start: '{"result":[',
        separator: ',',
        end: ']}',
        encodeRow: createObjectEncoder(columns, isoTimestamps),
      };
    case 'ndjson': {
      const encodeObject = createObjectEncoder(columns, isoTimestamps);
      return { start: '', separator: '', end: '', encodeRow: row => `${encodeObject(row)}\n` };
    }
    case 'csv':
    case 'csv-raw':
      return {
        start: toCsvLine(columns.map(column => column.name)),
        separator: '',
        end: '',
        encodeRow: row => {
          const cells = formatCells(columns, row, isoTimestamps);
          return toCsvLine(format === 'csv' ? protectSpreadsheet(columns, cells) : cells);
        },
      };
  }
}

/** Concatenates strings: that is faster than building objects, and it copies stored JSON unchanged. */
function createObjectEncoder(columns: readonly Column[], isoTimestamps: boolean): (row: Row) => string {
  const fields = columns.map(({ name, type }, index) => ({
    prefix: `${index === 0 ? '{' : ','}${JSON.stringify(name)}:`,
    encode: isoTimestamps && isTimestamp(type) ? JSON_ENCODERS.utc_datetime : JSON_ENCODERS[type],
  }));
  return row => {
    let object = '';
    let index = 0;
    for (const { prefix, encode } of fields) {
      const cell = row[index++] ?? null;
      object += prefix + (cell === null ? 'null' : encode(cell));
    }
    return `${object}}`;
  };
}

const JSON_ENCODERS: Record<ColumnType, (cell: NonNullable<Cell>) => string> = {
  text: cell => JSON.stringify(cell),
  json: cell => String(cell),
  integer: cell => String(cell),
  number: cell => String(cell),
  unix_microseconds: cell => String(cell),
  utc_datetime: cell => {
    const text = toIsoTimestamp(cell);
    return text === undefined ? 'null' : `"${text}"`;
  },
};

function isTimestamp(type: ColumnType): boolean {
  return type === 'unix_microseconds' || type === 'utc_datetime';
}

/** The timestamp farthest from 1970 that a JavaScript Date can format. `infinity` in DuckDB is beyond it. */
const MAX_ISO_MICROS = 8_640_000_000_000_000_000n;

function toIsoTimestamp(cell: NonNullable<Cell>): string | undefined {
  const micros = BigInt(cell);
  return micros > MAX_ISO_MICROS || micros < -MAX_ISO_MICROS ? undefined : formatTimestamp(micros);
}

/** RFC 4180: CRLF line ends, quotes only if a value needs them. Null is an empty field. */
function toCsvLine(cells: readonly string[]): string {
  return `${cells.map(quoteCsv).join(',')}\r\n`;
}

function quoteCsv(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/**
 * Puts a single quote before a text that a spreadsheet would run as a formula: anyone who can send a log record could otherwise
 * run one on the machine of its reader. Numbers and timestamps need no protection.
 */
function protectSpreadsheet(columns: readonly Column[], cells: readonly string[]): string[] {
  return cells.map((cell, index) => {
    const type = columns[index]?.type;
    return (type === 'text' || type === 'json') && /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  });
}

/** Formats the cells of a row as plain text, for CSV. */
function formatCells(columns: readonly Column[], row: Row, isoTimestamps: boolean): string[] {
  return columns.map(({ type }, index) => {
    const cell = row[index] ?? null;
    if (cell === null) return '';
    const isIso = type === 'utc_datetime' || (isoTimestamps && isTimestamp(type));
    return isIso ? (toIsoTimestamp(cell) ?? '') : String(cell);
  });
}
