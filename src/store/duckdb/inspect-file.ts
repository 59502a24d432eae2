// Reads every record of a store's file without changing it, and reports what is damaged. DuckDB checks the checksum of each block
// that it reads. The records of a part are compared with the checksum of the part, if the file has one (part-checksums.ts).
import { join, resolve } from 'node:path';
import { byteRange, type Damage } from '../../domain/damage.ts';
import type { LogKind } from '../../domain/log-columns.ts';
import { STORE_FILE } from '../../system/data-directory.ts';
import { addChecksums, type Checksum, EMPTY_CHECKSUM, readChecksumOfColumns } from './checksum.ts';
import type { DuckDBConnection } from './driver.ts';
import { createReaderInstance } from './open-database.ts';
import { loadChecksums, type PartChecksum } from './part-checksums.ts';
import { ROW_GROUP_ROWS } from './parts.ts';
import { describeUnfinishedCheckpoint, describeUnfinishedWrite, pathOfWal, quote } from './recover-file.ts';
import { FLUSHED_TABLES, kindOfTable } from './schema.ts';

export interface InspectOptions {
  readonly dataDirectory: string;
  /** In DuckDB's notation. */
  readonly memoryLimit: string;
  /** Called with the number of rows that were read, and how many there are. */
  readonly onProgress: (rows: number, total: number) => void;
}

interface Table {
  readonly name: string;
  readonly rows: number;
  readonly columns: readonly string[];
}

const BLOCK_BYTES = 256 * 1024;

export interface InspectedStore {
  /** How many records were read. */
  readonly records: number;
  readonly damages: readonly Damage[];
  /** See Store.durableUpTo; 0 if that cannot be read. */
  readonly durableUpTo: (kind: LogKind) => number;
}

/** The caller must hold the lock of the data directory. */
export async function inspectFile({
  dataDirectory,
  memoryLimit,
  onProgress,
}: InspectOptions): Promise<InspectedStore> {
  const instance = await createReaderInstance(memoryLimit);
  const connection = await instance.connect();
  const file = join(resolve(dataDirectory), STORE_FILE);
  const damages: Damage[] = [];
  const report = (place: string, error: unknown) => damages.push(toDamage(place, error));
  try {
    const tables = await openTables(connection, file).catch(error => {
      damages.push(describeUnfinishedWrite(file, error) ?? toDamage('', error));
    });
    if (tables === undefined)
      return { records: 0, damages: await prependCause(file, damages), durableUpTo: () => 0 };
    const checksums = await loadSavedChecksums(connection, tables).catch(error => {
      report('table part_checksums', error);
      return new Map<number, PartChecksum>();
    });
    const total = tables.reduce((sum, { rows }) => sum + rows, 0);
    let [records, read] = [0, 0];
    for (const table of tables) {
      const onRead = (rows: number) => {
        read += rows;
        if (kindOfTable(table.name) !== undefined) records += rows;
        onProgress(read, total);
      };
      const found = await readTable(connection, table, report, onRead);
      const written = checksums.get(numberOf(table.name));
      if (found !== undefined && written !== undefined) compare(table.name, written, found, report);
    }
    // A table that cannot be read was reported above.
    const flushed = await readFlushed(connection, tables).catch(() => new Map<LogKind, number>());
    return {
      records,
      damages: await prependCause(file, damages),
      durableUpTo: kind => flushed.get(kind) ?? 0,
    };
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

/** If there are damages and the last checkpoint is unfinished, lists the checkpoint first: it can be the cause of all of them. */
async function prependCause(file: string, damages: Damage[]): Promise<Damage[]> {
  const cause = damages.length === 0 ? undefined : await describeUnfinishedCheckpoint(file);
  return cause === undefined ? damages : [cause, ...damages];
}

type Report = (place: string, error: unknown) => void;

interface RowRange {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
}

async function openTables(connection: DuckDBConnection, file: string): Promise<Table[]> {
  await connection.run(`attach ${quote(file)} as logs (read_only)`);
  const result = await connection.runAndReadAll(
    `select table_name, any_value(estimated_size), string_agg(column_name, ',' order by column_index)
    from duckdb_tables() join duckdb_columns() using (database_name, table_name)
    where database_name = 'logs' group by all order by table_name`,
  );
  return result.getRows().map(([name, rows, columns]) => ({
    name: String(name),
    rows: Number(rows),
    columns: String(columns).split(','),
  }));
}

/** Returns none for a file that a version up to 0.2.0 has written. */
async function loadSavedChecksums(
  connection: DuckDBConnection,
  tables: readonly Table[],
): Promise<ReadonlyMap<number, PartChecksum>> {
  return tables.some(({ name }) => name === 'part_checksums') ? loadChecksums(connection) : new Map();
}

async function readFlushed(
  connection: DuckDBConnection,
  tables: readonly Table[],
): Promise<ReadonlyMap<LogKind, number>> {
  const flushed = new Map<LogKind, number>();
  for (const { name } of tables.filter(table => FLUSHED_TABLES.includes(table.name))) {
    // `records` is the sequence number up to which the kind is flushed (schema.ts).
    const sequences = await connection.runAndReadAll(`select kind, records from logs.${name}`);
    for (const [kind, sequence] of sequences.getRows()) flushed.set(kind as LogKind, Number(sequence));
  }
  return flushed;
}

function numberOf(table: string): number {
  return Number(/_(?:part|compacted)_(\d+)$/.exec(table)?.[1] ?? Number.NaN);
}

/** Returns undefined if some rows of the table cannot be read. Reports these rows. */
async function readTable(
  connection: DuckDBConnection,
  { name, columns }: Table,
  report: Report,
  onRead: (rows: number) => void,
): Promise<Checksum | undefined> {
  let found = EMPTY_CHECKSUM;
  let isComplete = true;
  let end: number;
  try {
    const last = await connection.runAndReadAll(`select max(rowid) from logs.${name}`);
    end = Number(last.value(0, 0) ?? -1) + 1;
  } catch (error) {
    report(`table ${name}`, error);
    return undefined;
  }
  for (let start = 0; start < end; start += ROW_GROUP_ROWS) {
    const rows = { start, end: Math.min(end, start + ROW_GROUP_ROWS) };
    try {
      const read = await readRows(connection, name, columns, rows);
      found = addChecksums(found, read);
      onRead(read.rows);
    } catch (error) {
      isComplete = false;
      await reportColumns(connection, name, columns, rows, error, report);
    }
  }
  return isComplete ? found : undefined;
}

function readRows(
  connection: DuckDBConnection,
  table: string,
  columns: readonly string[],
  { start, end }: RowRange,
): Promise<Checksum> {
  const sql = `rowid >= ${start} and rowid < ${end}`;
  return readChecksumOfColumns(connection, columns, `logs.${table}`, { sql, values: {} });
}

/** Finds out which columns of a row group cannot be read. */
async function reportColumns(
  connection: DuckDBConnection,
  table: string,
  columns: readonly string[],
  rows: RowRange,
  firstError: unknown,
  report: Report,
): Promise<void> {
  const place = `table ${table}, row group ${rows.start / ROW_GROUP_ROWS} (rows ${rows.start} to ${rows.end - 1})`;
  let damagedColumns = 0;
  for (const column of columns)
    try {
      await readRows(connection, table, [column], rows);
    } catch (error) {
      damagedColumns++;
      report(`${place}, column ${column}`, error);
    }
  if (damagedColumns === 0) report(place, firstError);
}

function compare(
  table: string,
  { checksum, unverified }: PartChecksum,
  found: Checksum,
  report: Report,
): void {
  const remedy = unverified === undefined ? '' : '; the next start of the server rewrites it from the spool';
  if (found.rows !== checksum.rows)
    report(
      `table ${table}`,
      new Error(`it has ${found.rows} records, but ${checksum.rows} were written${remedy}`),
    );
  else if (found.sum !== checksum.sum)
    report(`table ${table}`, new Error(`its records differ from those that were written${remedy}`));
}

/** Adds the byte range of the damaged block to `place`, if DuckDB's error has its offset. */
function toDamage(place: string, error: unknown): Damage {
  const [problem = ''] = (error as Error).message.split('\n', 1);
  const offset = Number(/in block at location (\d+)/.exec(problem)?.[1] ?? Number.NaN);
  const block = Number.isNaN(offset) ? [] : [byteRange(offset, offset + BLOCK_BYTES)];
  const file = /\bWAL\b/.test(problem) ? pathOfWal(STORE_FILE) : STORE_FILE;
  return { file, place: [...(place === '' ? [] : [place]), ...block].join(', '), problem };
}
