// The store of an earlier release: one DuckDB file with several tables for each kind.
import { join } from 'node:path';
import { OperatorError } from '../../../domain/errors.ts';
import { LOG_KINDS, type LogKind, lineColumnsOf } from '../../../domain/log-columns.ts';
import { createInstance, quote } from '../database.ts';
import type { DuckDBInstance, DuckDBValue } from '../driver.ts';
import { selectWithFieldColumns } from '../field-columns.ts';
import type { LoadEntry, Manifest } from '../manifest.ts';
import { addRunLong, type StoreConnection } from '../run-long.ts';
import { OLD_STORE_FILE } from './marker.ts';
import { restoreMetadata } from './metadata-backup.ts';
import { attachRecovering, type OnWalTruncated } from './truncate-wal.ts';

/** The newest schema version of dendro.duckdb. */
const LAST_SCHEMA_VERSION = 4;

/** The table with the flushed sequence numbers: since schema version 4, and in version 3. */
const FLUSHED_TABLES: readonly string[] = ['flushed_records', 'sealed_records'];

/** A release of DuckDB can change its hash function. Then this value changes, and stored checksums say nothing. */
const PROBE = "hash('dendro', 1::bigint, 0.5::double, timestamp '2026-01-01')";

export interface OldTable {
  readonly name: string;
  readonly kind: LogKind;
  /** Undefined if the table was read back after it was written, as all tables of 0.2.0 and earlier count. */
  readonly unverified: Unverified | undefined;
}

/** What a table must have that was not read back after it was written. The spool still has its records. */
export interface Unverified {
  readonly records: number;
  readonly checksum: bigint;
  /** Its sequence numbers; the second is exclusive. */
  readonly firstSequence: number;
  readonly nextSequence: number;
}

export interface OldStoreOptions {
  readonly dataDirectory: string;
  readonly memoryLimit: string;
  readonly threads: number;
  readonly onWalTruncated: OnWalTruncated;
}

export class OldStore {
  readonly #options: OldStoreOptions;
  #instance: DuckDBInstance;
  #connection: StoreConnection;

  private constructor(options: OldStoreOptions, instance: DuckDBInstance, connection: StoreConnection) {
    this.#options = options;
    this.#instance = instance;
    this.#connection = connection;
  }

  /** Restores the file after a crash of the earlier release. The caller must hold the lock of the data directory. */
  static async open(options: OldStoreOptions): Promise<OldStore> {
    const file = join(options.dataDirectory, OLD_STORE_FILE);
    await restoreMetadata(file).catch(error => {
      throw cannotOpen(file, error);
    });
    const store = new OldStore(options, ...(await connect(options, file)));
    try {
      await store.#checkVersion();
      return store;
    } catch (error) {
      store.close();
      throw error;
    }
  }

  get connection(): StoreConnection {
    return this.#connection;
  }

  /** After an error, DuckDB may refuse to read other tables. */
  async reopen(): Promise<void> {
    this.close();
    const file = join(this.#options.dataDirectory, OLD_STORE_FILE);
    [this.#instance, this.#connection] = await connect(this.#options, file);
  }

  close(): void {
    this.#connection.closeSync();
    this.#instance.closeSync();
  }

  /** The tables with records. Temporary tables of interrupted rewrites are not among them. */
  async listTables(): Promise<readonly OldTable[]> {
    const unverified = await this.#readUnverified();
    return (await this.#tableNames()).flatMap(name => {
      const kind = kindOfTable(name);
      const number = Number(/\d+$/.exec(name)?.[0]);
      return kind === undefined ? [] : [{ name, kind, unverified: unverified.get(number) }];
    });
  }

  /** From the metadata of the file. */
  async countRecords({ name }: OldTable): Promise<number> {
    const [[count] = []] = await this.#rows(`select count(*) from logs.${name}`);
    return Number(count);
  }

  /** Whether a table that was not read back has what was written to it. */
  async isSound({ name, kind, unverified }: OldTable): Promise<boolean> {
    if (unverified === undefined) return true;
    const [[records, checksum] = []] = await this.#rows(
      `select count(*), coalesce(sum(hash(${columnNames(kind)})::hugeint), 0) from logs.${name}`,
    );
    // Version 0.2.0 may have added records.
    if (Number(records) > unverified.records) return true;
    return Number(records) === unverified.records && BigInt(String(checksum)) === unverified.checksum;
  }

  /** The size of the blocks that have records or metadata. */
  async usedBytes(): Promise<number> {
    const [[bytes] = []] = await this.#rows(
      "select used_blocks * block_size from pragma_database_size() where database_name = 'logs'",
    );
    return Number(bytes);
  }

  async readStoredUpTo(): Promise<Manifest['storedUpTo']> {
    const table = await this.#findTable(FLUSHED_TABLES);
    if (table === undefined) return {};
    // The column `records` has the next sequence number; it is not a count.
    const rows = await this.#rows(`select kind, records from logs.${table}`);
    return Object.fromEntries(rows.map(([kind, sequence]) => [String(kind), Number(sequence)]));
  }

  async readLoads(): Promise<LoadEntry[]> {
    if ((await this.#findTable(['loads'])) === undefined) return [];
    const rows = await this.#rows(
      'select source, digest, file_bytes, records, epoch_us(loaded_at) from logs.loads order by loaded_at',
    );
    return rows.map(([source, digest, fileBytes, records, loadedAt]) => ({
      source: String(source),
      digest: String(digest),
      fileBytes: Number(fileBytes),
      records: Number(records),
      loadedAt: BigInt(String(loadedAt)),
    }));
  }

  async #readUnverified(): Promise<ReadonlyMap<number, Unverified>> {
    if ((await this.#findTable(['part_checksums'])) === undefined) return new Map();
    const rows = await this.#rows(
      `select part, records, checksum, first_sequence, next_sequence from logs.part_checksums
      where first_sequence is not null and probe = ${PROBE}`,
    );
    return new Map(
      rows.map(([part, records, checksum, firstSequence, nextSequence]) => [
        Number(part),
        {
          records: Number(records),
          checksum: BigInt(String(checksum)),
          firstSequence: Number(firstSequence),
          nextSequence: Number(nextSequence),
        },
      ]),
    );
  }

  async #checkVersion(): Promise<void> {
    if ((await this.#findTable(['schema_version'])) === undefined) return;
    const [[version] = []] = await this.#rows('select max(version) from logs.schema_version');
    if (Number(version) > LAST_SCHEMA_VERSION)
      throw new OperatorError(
        `the store in ${this.#options.dataDirectory} has schema version ${version}, but this version of Dendro can convert at most ${LAST_SCHEMA_VERSION}; use a newer version`,
      );
  }

  async #findTable(names: readonly string[]): Promise<string | undefined> {
    return (await this.#tableNames()).find(name => names.includes(name));
  }

  async #tableNames(): Promise<string[]> {
    const rows = await this.#rows(
      "select table_name from duckdb_tables() where database_name = 'logs' order by table_oid",
    );
    return rows.map(([name]) => String(name));
  }

  async #rows(sql: string): Promise<DuckDBValue[][]> {
    return (await this.#connection.runAndReadAll(sql)).getRows();
  }
}

async function connect(
  { dataDirectory, memoryLimit, threads, onWalTruncated }: OldStoreOptions,
  file: string,
): Promise<[DuckDBInstance, StoreConnection]> {
  const instance = await createInstance(dataDirectory, memoryLimit, threads);
  const connection = addRunLong(await instance.connect(), threads);
  try {
    // The file does not change: no checkpoint runs.
    await connection.run('pragma disable_checkpoint_on_shutdown');
    await connection.run("set global checkpoint_threshold = '1TB'");
    await connection.run("set global TimeZone = 'UTC'");
    await attachRecovering(
      file,
      async () => void (await connection.run(`attach ${quote(file)} as logs`)),
      onWalTruncated,
    );
    return [instance, connection];
  } catch (error) {
    connection.closeSync();
    instance.closeSync();
    throw error instanceof OperatorError ? error : cannotOpen(file, error);
  }
}

function cannotOpen(file: string, error: unknown): OperatorError {
  const [reason = ''] = (error as Error).message.split('\n', 1);
  if (/could not set lock/i.test(reason))
    return new OperatorError(`${file} is in use by another process; stop it, then start again`);
  return new OperatorError(
    `cannot read the store of an earlier release: ${reason}; nothing was converted. Keep a copy of ${file}, then restore the data directory from a backup`,
  );
}

/** A subquery with the records of an old table, the columns of a part, and `rowid`. */
export function recordsOf({ name, kind }: OldTable): string {
  return `(${selectWithFieldColumns(kind, `(select rowid, ${columnNames(kind)} from logs.${name})`)})`;
}

/** A SELECT of the records that match a condition, with exactly the columns of a part. */
export function selectFrom(table: OldTable, condition: string): string {
  return `select * exclude (rowid) from ${recordsOf(table)} where ${condition}`;
}

/** All old tables of a kind have these columns. */
function columnNames(kind: LogKind): string {
  return lineColumnsOf(kind)
    .map(({ name }) => name)
    .join(', ');
}

/** The kind whose records a table has, in any version of the schema. Undefined for other tables and temporary ones. */
function kindOfTable(table: string): LogKind | undefined {
  const name = /^(\w+)_(?:logs|(?:part|compacted|sealed|merged)_\d+)$/.exec(table)?.[1];
  return LOG_KINDS.find(kind => kind === name);
}
