// The columns of a kind's tables, and inserts of log lines into them through a temporary file. DuckDB reads a file several times faster
// than values that JavaScript passes to it.
import { rm, writeFile } from 'node:fs/promises';
import { columnsOf, type LogKind } from '../../domain/log-columns.ts';
import {
  JSON_STRINGS_FLAG,
  lineFieldsOf,
  NULL_MARKER,
  offsetAfterLine,
  UNIT_SEPARATOR,
} from '../../domain/log-line.ts';
import { selectWithFieldColumns } from './field-columns.ts';
import type { StoreConnection } from './run-long.ts';

const CSV_TYPES = {
  text: 'VARCHAR',
  json: 'VARCHAR',
  integer: 'BIGINT',
  timestamp: 'BIGINT',
  number: 'DOUBLE',
};

/** A line of a 1 MiB record can have 6 MiB: control characters take 6 bytes each in JSON. */
const MAX_LINE_BYTES = 16 * 1024 * 1024;

/** An insert of this size or more takes at least 10 ms, so it uses `runLong` (run-long.ts). */
const LONG_INSERT_BYTES = 1024 * 1024;

/** DuckDB parses the metadata of this many records at once. */
const VECTOR_ROWS = 2048;
/** Lines that are parsed at once. Parsed JSON takes up to 20 times the memory of its text. */
const MAX_PARSED_BYTES = 2 * 1024 * 1024;

/**
 * Cuts chunks of whole lines into pieces that are inserted one after the other: most often one piece, but a few lines at a time if
 * they are large.
 */
export function* cutLargeLines(
  chunks: readonly Uint8Array[],
): Generator<{ readonly count: number; readonly chunks: readonly Uint8Array[] }> {
  let piece = { count: 0, chunks: [] as Uint8Array[] };
  let parsedBytes = 0;
  for (const chunk of chunks) {
    let start = 0;
    for (let end = 0; end < chunk.length; piece.count++) {
      const lineBytes = offsetAfterLine(chunk, end) - end;
      if (piece.count % VECTOR_ROWS === 0) parsedBytes = 0;
      parsedBytes += lineBytes;
      if (parsedBytes > MAX_PARSED_BYTES && piece.count > 0) {
        yield { ...piece, chunks: [...piece.chunks, chunk.subarray(start, end)] };
        piece = { count: 0, chunks: [] };
        [start, parsedBytes] = [end, lineBytes];
      }
      end += lineBytes;
    }
    piece.chunks.push(chunk.subarray(start));
  }
  yield piece;
}

/**
 * Inserts chunks of whole lines (log-line.ts) into a table that has the columns of `<kind>_logs`. `file` is the temporary file; inserts
 * through the same one must not overlap.
 */
export async function insertLines(
  connection: StoreConnection,
  file: string,
  kind: LogKind,
  table: string,
  chunks: readonly Uint8Array[],
): Promise<void> {
  const isLong = chunks.reduce((sum, { length }) => sum + length, 0) >= LONG_INSERT_BYTES;
  const sql = `insert into ${table} by name ${selectFromLines(kind)}`;
  try {
    await writeFile(file, chunks, { mode: 0o600 });
    await (isLong ? connection.runLong(sql, { file }) : connection.run(sql, { file }));
  } finally {
    await rm(file, { force: true }).catch(() => {}); // the next insert overwrites it
  }
}

function selectFromLines(kind: LogKind): string {
  const fields = lineFieldsOf(kind);
  const types = fields.map(({ name, type }) => `${name}: '${CSV_TYPES[type]}'`);
  const texts = fields.filter(({ type }) => type === 'text').map(({ name }) => textSql(name));
  const lines = `(select * exclude (flag) replace (make_timestamp(timestamp) as timestamp, ${texts.join(', ')})
    from read_csv($file, auto_detect = false, header = false,
      columns = {flag: 'VARCHAR', ${types.join(', ')}, metadata: 'VARCHAR'},
      delim = ${chr(UNIT_SEPARATOR)}, nullstr = ${chr(NULL_MARKER)}, quote = '', escape = '', new_line = '\\n', strict_mode = false,
      max_line_size = ${MAX_LINE_BYTES}, buffer_size = ${MAX_LINE_BYTES}))`;
  return selectWithFieldColumns(kind, lines);
}

function chr(character: string): string {
  return `chr(${character.charCodeAt(0)})`;
}

/** SQL for a text field, which is a JSON string in a line with the flag. */
function textSql(name: string): string {
  return `case when flag = '${JSON_STRINGS_FLAG}' then from_json(${name}, '"VARCHAR"') else ${name} end as ${name}`;
}

/** The column definitions of a part. */
export function tableColumns(kind: LogKind): string {
  return columnsOf(kind)
    .map(({ name, duckdb }) => `${name} ${duckdb}`)
    .join(', ');
}

/** The same columns for a table in memory, where DuckDB compresses nothing. */
export function memoryTableColumns(kind: LogKind): string {
  return tableColumns(kind).replaceAll(' using compression zstd', '');
}
