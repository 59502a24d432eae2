// Opens the DuckDB instance of the store and locks it down: afterwards no SQL can read or write files outside the directories
// `staging` and `parts`, load an extension or change a setting. The instance itself is in memory; parts are attached files.
import { mkdirSync, rmSync } from 'node:fs';
import { statfs } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { OperatorError } from '../../domain/errors.ts';
import { createDirectory } from '../../system/files.ts';
import { type DuckDBConnection, DuckDBInstance } from './driver.ts';
import { PARTS_DIRECTORY } from './manifest.ts';
import { REGEXP_MACRO } from './regexp-macro.ts';
import { addRunLong, type StoreConnection } from './run-long.ts';

export interface DatabaseOptions {
  readonly dataDirectory: string;
  /** In DuckDB's notation: 500MB, 2GB. */
  readonly memoryLimit: string;
  /** Threads of DuckDB. Default: the number of cores. */
  readonly threads?: number | undefined;
}

export interface Database {
  readonly dataDirectory: string;
  /** Temporary files through which log lines are inserted. */
  readonly stagingDirectory: string;
  readonly partsDirectory: string;
  connect(): Promise<StoreConnection>;
  close(): void;
}

export async function openDatabase(options: DatabaseOptions): Promise<Database> {
  const { memoryLimit, threads = availableParallelism() } = options;
  const dataDirectory = resolve(options.dataDirectory);
  const stagingDirectory = join(dataDirectory, 'staging');
  const partsDirectory = join(dataDirectory, PARTS_DIRECTORY);
  try {
    createDirectory(partsDirectory);
    // Removes files of a killed process; version 0.1.0 had them in intake/. This process holds the lock of the data directory.
    for (const leftover of [stagingDirectory, spillDirectoryIn(dataDirectory), join(dataDirectory, 'intake')])
      rmSync(leftover, { recursive: true, force: true });
    mkdirSync(stagingDirectory, { mode: 0o700 });
  } catch (error) {
    throw new OperatorError(
      `cannot use the data directory ${options.dataDirectory}: ${(error as Error).message}`,
    );
  }
  const instance = await createInstance(dataDirectory, memoryLimit, threads);
  const connection = await instance.connect();
  try {
    await connection.run("attach ':memory:' as mem");
    await connection.run(REGEXP_MACRO);
    await lockDown(connection, [stagingDirectory, partsDirectory]);
  } finally {
    connection.closeSync();
  }
  return {
    dataDirectory,
    stagingDirectory,
    partsDirectory,
    connect: async () => addRunLong(await instance.connect(), threads),
    close: () => instance.closeSync(),
  };
}

/** Where DuckDB writes what does not fit in memory. */
function spillDirectoryIn(dataDirectory: string): string {
  return join(dataDirectory, 'tmp');
}

export async function createInstance(
  dataDirectory: string,
  memoryLimit: string,
  threads: number,
): Promise<DuckDBInstance> {
  try {
    return await DuckDBInstance.create(':memory:', {
      threads: String(threads),
      // All of them are DuckDB's own. By default it has one fewer, which on two cores leaves one: an apply and a flush would wait for
      // each other (run-long.ts).
      external_threads: '0',
      memory_limit: memoryLimit,
      temp_directory: spillDirectoryIn(dataDirectory),
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      // With late materialization, queries for the newest 100 records (logs.all) were up to 20 times slower.
      late_materialization_max_rows: '0',
      // With this optimizer, a query with ORDER BY and LIMIT on one table misses rows while others are added to the table.
      // It does not apply to a union of tables, which most queries read, so they are as fast without it.
      disabled_optimizers: 'row_group_pruner',
      // Returns memory to the system soon after a flush. Otherwise DuckDB kept it: a fifth of the memory of the process.
      allocator_flush_threshold: '8MB',
      allocator_bulk_deallocation_flush_threshold: '16MB',
    });
  } catch (error) {
    throw new OperatorError(`cannot start the embedded store: ${(error as Error).message.split('\n')[0]}`);
  }
}

async function lockDown(connection: DuckDBConnection, directories: readonly string[]): Promise<void> {
  const allowed = directories.map(directory => quote(`${directory}/`));
  await connection.run("set global TimeZone = 'UTC'");
  await connection.run(`set global allowed_directories = [${allowed}]`);
  await connection.run('set global enable_external_access = false');
  await connection.run('set global lock_configuration = true');
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

/** Stays free for the spool. */
const RESERVE_BYTES = 64 * 1024 * 1024;

/** Throws unless this many bytes can be written. */
export async function requireDiskSpace(directory: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const [free, needed] = [bavail * bsize, bytes + RESERVE_BYTES];
  if (free < needed)
    throw new OperatorError(`not enough disk space: ${free} bytes are free, ${needed} bytes are needed`);
}
