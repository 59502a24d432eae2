// Opens the store's file and closes every other door: from here on no SQL reads or writes a file outside the intake
// folder, loads an extension or changes a setting.
import { mkdirSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { OperatorError } from '../../domain/errors.ts';
import { createDirectory } from '../../system/files.ts';
import { type DuckDBConnection, DuckDBInstance } from './driver.ts';

const SCHEMA_VERSION = 3;
export const FILE_NAME = 'dendro.duckdb';
/** To prepare it is to look at the records in memory and at the file: a transaction sees either as it was at its first look. */
export const SNAPSHOT_SQL = 'select 1 from hot.moment, logs.schema_version where $nothing is null';

export interface Database {
  readonly instance: DuckDBInstance;
  /** The one folder that SQL may read files from. */
  readonly intakeFolder: string;
  /** A new connection whose table names mean the relations of hot-records.ts. */
  connect(): Promise<DuckDBConnection>;
}

export async function openDatabase(
  dataDirectory: string,
  memoryLimit: string,
  threads = availableParallelism(),
): Promise<Database> {
  const folder = resolve(dataDirectory);
  const intakeFolder = join(folder, 'intake');
  try {
    createDirectory(folder);
  } catch (error) {
    throw new OperatorError(`cannot use the data directory ${dataDirectory}: ${(error as Error).message}`);
  }
  const instance = await createInstance({
    threads: String(threads),
    memory_limit: memoryLimit,
    temp_directory: join(folder, 'tmp'),
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    // Newest-100 queries over whole row groups: late materialisation made them up to 20 times slower.
    late_materialization_max_rows: '0',
    // Whoever writes the file checkpoints when it is done; in the middle of a seal it would hold up the others.
    checkpoint_threshold: '1TB',
    // What a seal freed goes back to the system soon: kept for the next, it was a fifth of the process.
    allocator_flush_threshold: '8MB',
    allocator_bulk_deallocation_flush_threshold: '16MB',
  });
  const connection = await instance.connect();
  try {
    await attachFile(connection, join(folder, FILE_NAME), dataDirectory);
    await applySchema(connection, dataDirectory);
    await connection.run("attach ':memory:' as hot");
    await connection.run('create table hot.moment (nothing boolean)');
    rmSync(intakeFolder, { recursive: true, force: true }); // what a process that was killed left; the file's lock is ours now
    mkdirSync(intakeFolder, { mode: 0o700 });
    await lockDown(connection, intakeFolder);
  } catch (error) {
    connection.closeSync();
    instance.closeSync();
    throw error;
  }
  connection.closeSync();
  return {
    instance,
    intakeFolder,
    async connect() {
      const reader = await instance.connect();
      await reader.run('use hot');
      return reader;
    },
  };
}

async function createInstance(settings: Record<string, string>): Promise<DuckDBInstance> {
  try {
    return await DuckDBInstance.create(':memory:', settings);
  } catch (error) {
    throw new OperatorError(`cannot start the embedded store: ${(error as Error).message.split('\n')[0]}`);
  }
}

async function attachFile(connection: DuckDBConnection, file: string, dataDirectory: string): Promise<void> {
  try {
    await connection.run(`attach '${file.replaceAll("'", "''")}' as logs (storage_version 'latest')`);
    await connection.run('use logs');
  } catch (error) {
    const message = (error as Error).message;
    if (/could not set lock/i.test(message)) {
      const owner = /PID (\d+)/.exec(message)?.[1];
      const who = owner === undefined ? 'another process' : `another process (PID ${owner})`;
      throw new OperatorError(
        `the data directory ${dataDirectory} is in use by ${who}; stop it, or talk to the running server with --url`,
      );
    }
    throw new OperatorError(`cannot open the store in ${dataDirectory}: ${message.split('\n')[0]}`);
  }
}

/** In one transaction: an upgrade that is cut short has not begun. */
async function applySchema(connection: DuckDBConnection, dataDirectory: string): Promise<void> {
  await connection.run('begin transaction');
  await connection.run('create table if not exists schema_version (version integer not null)');
  const found = (await connection.runAndReadAll('select max(version) from schema_version')).value(0, 0);
  if (found !== null && Number(found) > SCHEMA_VERSION)
    throw new OperatorError(
      `the store in ${dataDirectory} has schema version ${found}, and this program knows ${SCHEMA_VERSION}: use a newer Dendro`,
    );
  // How many of the records that came through the spool are in the file. Written in the transaction that brings them in,
  // so that after a crash the spool knows where to go on.
  await connection.run(
    'create table if not exists sealed_records (kind varchar primary key, records bigint not null)',
  );
  if (found !== null && Number(found) < 3) await nameTables(connection);
  if (found === null || Number(found) < SCHEMA_VERSION)
    await connection.run('insert into schema_version values ($1)', [SCHEMA_VERSION]);
  await connection.run('commit');
}

/** Up to version 2 a kind had one table, by the name that is now a view's. */
async function nameTables(connection: DuckDBConnection): Promise<void> {
  const tables = await connection.runAndReadAll(
    "select table_name from duckdb_tables() where database_name = 'logs' and table_name like '%\\_logs' escape '\\'",
  );
  for (const [index, [name]] of tables.getRows().entries()) {
    const table = String(name).replace(/_logs$/, `_sealed_${index + 1}`);
    await connection.run(`alter table ${name} rename to ${table}`);
    await connection.run(`create view ${name} as from ${table}`);
  }
}

async function lockDown(connection: DuckDBConnection, intakeFolder: string): Promise<void> {
  await connection.run("set global TimeZone = 'UTC'");
  await connection.run(`set global allowed_directories = ['${intakeFolder.replaceAll("'", "''")}/']`);
  await connection.run('set global enable_external_access = false');
  await connection.run('set global lock_configuration = true');
}
