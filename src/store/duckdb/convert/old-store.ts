// The store of an earlier release: one DuckDB file with several tables for each kind.
import { createReadStream, existsSync, statSync } from 'node:fs';
import { truncate } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { OperatorError } from '../../../domain/errors.ts';
import { LOG_KINDS, type LogKind, lineColumnsOf } from '../../../domain/log-columns.ts';
import type { Observe } from '../../../observe/event.ts';
import { syncFile, writeFileDurably } from '../../../system/files.ts';
import { createInstance, quote } from '../database.ts';
import type { DuckDBInstance, DuckDBValue } from '../driver.ts';
import { selectWithFieldColumns } from '../field-columns.ts';
import type { Manifest } from '../manifest.ts';
import { addRunLong, type StoreConnection } from '../run-long.ts';
import { OLD_STORE_FILE } from './marker.ts';

/** The newest schema version of dendro.duckdb. */
const LAST_SCHEMA_VERSION = 4;

export interface OldTable {
  readonly name: string;
  readonly kind: LogKind;
}

/** Rows of an old table. */
export interface RowRange extends OldTable {
  readonly start: number;
  /** Exclusive. */
  readonly end: number;
  /** How many of these rows are not deleted. */
  readonly records: number;
}

export interface OldStoreOptions {
  readonly dataDirectory: string;
  readonly memoryLimit: string;
  readonly threads: number;
  readonly observe: Observe;
}

export class OldStore {
  readonly #options: OldStoreOptions;
  readonly #instance: DuckDBInstance;
  readonly connection: StoreConnection;
  #tables: readonly string[] = [];

  private constructor(options: OldStoreOptions, instance: DuckDBInstance, connection: StoreConnection) {
    this.#options = options;
    this.#instance = instance;
    this.connection = connection;
  }

  /** The caller must hold the lock of the data directory. The file does not change: no checkpoint runs. */
  static async open(options: OldStoreOptions): Promise<OldStore> {
    const { dataDirectory, memoryLimit, threads, observe } = options;
    const file = join(dataDirectory, OLD_STORE_FILE);
    const instance = await createInstance(dataDirectory, memoryLimit, threads);
    const store = new OldStore(options, instance, addRunLong(await instance.connect(), threads));
    const attach = () => store.connection.run(`attach ${quote(file)} as logs`);
    try {
      await store.connection.run('pragma disable_checkpoint_on_shutdown');
      await store.connection.run("set global checkpoint_threshold = '1TB'");
      await store.connection.run("set global TimeZone = 'UTC'");
      await attach().catch(async error => {
        await truncateLog(`${file}.wal`, error, observe);
        return attach();
      });
      await store.#readTables();
      return store;
    } catch (error) {
      store.close();
      throw error instanceof OperatorError ? error : cannotOpen(file, error);
    }
  }

  close(): void {
    this.connection.closeSync();
    this.#instance.closeSync();
  }

  /** After an error, DuckDB may refuse to read other tables. */
  reopen(): Promise<OldStore> {
    this.close();
    return OldStore.open(this.#options);
  }

  /** The tables with records. Temporary tables of interrupted rewrites are not among them. */
  get tables(): readonly OldTable[] {
    return this.#tables.flatMap(name => {
      const kind = /^(\w+)_(?:part|compacted|sealed|merged)_\d+$/.exec(name)?.[1];
      return LOG_KINDS.filter(each => each === kind).map(each => ({ name, kind: each }));
    });
  }

  /** Divides a table into ranges of up to `length` rows. Reads no values of the records. */
  async listRanges(table: OldTable, length: number): Promise<RowRange[]> {
    const rows = await this.#rows(
      `select rowid // ${length} as number, count(*) from logs.${table.name} group by number order by number`,
    );
    return rows.map(([number, records]) => ({
      ...{ ...table, records: Number(records) },
      ...{ start: Number(number) * length, end: (Number(number) + 1) * length },
    }));
  }

  /** The size of the blocks that have records or metadata. */
  async usedBytes(): Promise<number> {
    const [[bytes] = []] = await this.#rows(
      "select used_blocks * block_size from pragma_database_size() where database_name = 'logs'",
    );
    return Number(bytes);
  }

  async readStoredUpTo(): Promise<Manifest['storedUpTo']> {
    const table = this.#tables.find(name => name === 'flushed_records' || name === 'sealed_records'); // since version 4; in version 3
    if (table === undefined) return {};
    // The column `records` has the next sequence number; it is not a count.
    const rows = await this.#rows(`select kind, records from logs.${table}`);
    return Object.fromEntries(rows.map(([kind, sequence]) => [String(kind), Number(sequence)]));
  }

  async #readTables(): Promise<void> {
    const rows = await this.#rows(
      "select table_name from duckdb_tables() where database_name = 'logs' order by table_oid",
    );
    this.#tables = rows.map(([name]) => String(name));
    if (!this.#tables.includes('schema_version')) return;
    const [[version] = []] = await this.#rows('select max(version) from logs.schema_version');
    if (Number(version) > LAST_SCHEMA_VERSION)
      throw new OperatorError(
        `the store in ${this.#options.dataDirectory} has schema version ${version}, but this version of Dendro can convert at most ${LAST_SCHEMA_VERSION}; use a newer version`,
      );
  }

  async #rows(sql: string): Promise<DuckDBValue[][]> {
    return (await this.connection.runAndReadAll(sql)).getRows();
  }
}

/** A subquery with the records of a range, the columns of a part, and `rowid`. */
export function recordsOf({ name, kind, start, end }: RowRange): string {
  const columns = lineColumnsOf(kind).map(column => column.name);
  const rows = `rowid >= ${start} and rowid < ${end}`;
  return `(${selectWithFieldColumns(kind, `(select rowid, ${columns.join(', ')} from logs.${name} where ${rows})`)})`;
}

/**
 * After a power cut, the write-ahead log can end with an invalid entry, and DuckDB refuses the log. Each commit is synced before the
 * program relies on it, so only entries after the last synced commit can be invalid. They are moved to another file. Throws `error`
 * if it has another cause.
 */
async function truncateLog(path: string, error: unknown, observe: Observe): Promise<void> {
  const position = /Corrupt WAL file: entry at byte position (\d+)/.exec((error as Error).message)?.[1];
  const start = Number(position) - 16; // size and checksum of the entry are before this position
  const invalidBytes = position === undefined ? 0 : statSync(path).size - start;
  if (!(start >= 0 && invalidBytes > 0)) throw error;
  let copy = `${path}.damaged`;
  for (let number = 2; existsSync(copy); number++) copy = `${path}.damaged-${number}`; // an earlier copy is never replaced
  try {
    await writeFileDurably(copy, createReadStream(path, { start }));
    await truncate(path, start);
    await syncFile(path);
  } catch (failure) {
    throw new OperatorError(
      `cannot move an unfinished write of ${invalidBytes} bytes from the end of ${path} to ${copy}: ${(failure as Error).message}; free some disk space, or check the permissions of ${dirname(path)}, then start again`,
    );
  }
  observe({ type: 'old_log_truncated', path, invalidBytes, copy });
}

function cannotOpen(file: string, error: unknown): OperatorError {
  const [reason = ''] = (error as Error).message.split('\n', 1);
  if (/could not set lock/i.test(reason))
    return new OperatorError(`${file} is in use by another process; stop it, then start again`);
  return new OperatorError(
    `cannot read the store of an earlier release: ${reason}; nothing was converted. If that release was not stopped cleanly, start and stop it once. Otherwise keep a copy of ${file}, then restore the data directory from a backup`,
  );
}
