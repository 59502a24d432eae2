// Opens the store's file and locks DuckDB down: afterwards no SQL can read or write files outside the staging directory, load an
// extension or change a setting.
import { closeSync, existsSync, fstatSync, fsync, mkdirSync, openSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import type { Damage } from '../../domain/damage.ts';
import { OperatorError } from '../../domain/errors.ts';
import { STORE_FILE } from '../../system/data-directory.ts';
import { createDirectory } from '../../system/files.ts';
import { readAt } from '../../system/open-file.ts';
import { type DuckDBConnection, DuckDBInstance } from './driver.ts';
import { type OnFatalError, watchFatalErrors } from './fatal-errors.ts';
import {
  attachRecovering,
  cannotOpen,
  describeUnfinishedCheckpoint,
  describeUnfinishedWrite,
  pathOfWal,
  prepareFile,
  quote,
  type TruncatedWal,
} from './recover-file.ts';
import { addRunLong, type StoreConnection } from './run-long.ts';
import { applySchema, checkSchemaVersion } from './schema.ts';

const fsyncDescriptor = promisify(fsync);

/**
 * A transaction takes its snapshot of a database when a statement first names one of its tables. Preparing this statement
 * takes the snapshots of both databases: `mem` (memtables) and `logs` (the file). The type of $unused is unknown, so DuckDB
 * only binds the tables and plans nothing.
 */
export const SNAPSHOT_SQL = 'select 1 from mem.snapshot_anchor, logs.schema_version where $unused is null';

export interface Database {
  readonly instance: DuckDBInstance;
  /** The path of the file. */
  readonly file: string;
  /** The only directory in which SQL can read and write files. */
  readonly stagingDirectory: string;
  /** Opens a connection in which edge_logs means the view mem.edge_logs, of memtables and parts. The same for the other kinds. */
  connect(): Promise<StoreConnection>;
  /**
   * The same, but `runLong` does not keep a core busy while it waits for DuckDB. The connection must not use the file during a
   * checkpoint (run-long.ts).
   */
  connectWriter(): Promise<StoreConnection>;
  /** Makes the creation and the deletion of DuckDB's files durable. If it fails, it counts as a fatal error. */
  syncDirectory(): Promise<void>;
  /** Reads the file. Returns fewer bytes than `length` at its end. */
  readFile(offset: number, length: number): Promise<Buffer>;
  /** The size of the file in bytes. */
  fileSize(): number;
  /** Whether DuckDB's write-ahead log has changes that are not in the file. */
  hasWal(): boolean;
  /** All connections must be closed. */
  close(): void;
}

export interface DatabaseOptions {
  readonly dataDirectory: string;
  readonly memoryLimit: string;
  readonly threads?: number | undefined;
}

/** `onFatalError` is called if DuckDB has invalidated the file, `onWalTruncated` if it cannot use all of its write-ahead log. */
export async function openDatabase(
  options: DatabaseOptions,
  onFatalError: OnFatalError = () => {},
  onWalTruncated: (log: TruncatedWal) => void = () => {},
): Promise<Database> {
  const { dataDirectory, memoryLimit, threads = availableParallelism() } = options;
  const directory = resolve(dataDirectory);
  try {
    createDirectory(directory);
  } catch (error) {
    throw new OperatorError(`cannot use the data directory ${dataDirectory}: ${(error as Error).message}`);
  }
  const stagingDirectory = join(directory, 'staging');
  const file = join(directory, STORE_FILE);
  const instance = await createInstance(directory, memoryLimit, threads);
  const connection = watchFatalErrors(await instance.connect(), onFatalError);
  try {
    // DuckDB must not run a checkpoint when it closes the file. Only the Checkpointer runs checkpoints: it protects the file
    // against a power cut during one. This is the first step, because the instance is also closed if a later step fails.
    await connection.run('pragma disable_checkpoint_on_shutdown');
    await prepareFile(connection, file, onWalTruncated);
    await attachRecovering(file, () => attachFile(connection, file, dataDirectory), onWalTruncated);
    await applySchema(connection, dataDirectory);
    await connection.run("attach ':memory:' as mem");
    await connection.run('create table mem.snapshot_anchor (unused boolean)');
    // Removes files of a killed process; version 0.1.0 had them in intake/. This process holds the lock of the data directory.
    for (const leftover of [stagingDirectory, join(directory, 'intake')])
      rmSync(leftover, { recursive: true, force: true });
    mkdirSync(stagingDirectory, { mode: 0o700 });
    await lockDown(connection, stagingDirectory);
  } catch (error) {
    connection.closeSync();
    instance.closeSync();
    throw error;
  }
  connection.closeSync();
  // Kept open, so that `syncDirectory` works even if the process runs out of descriptors.
  const directoryDescriptor = openSync(directory, 'r');
  // Kept open, because closing any descriptor of the file would release DuckDB's lock on it.
  const fileDescriptor = openSync(file, 'r');
  const connect = async (runLongThreads: number) => {
    const opened = watchFatalErrors(addRunLong(await instance.connect(), runLongThreads), onFatalError);
    try {
      await opened.run('use mem');
      return opened;
    } catch (error) {
      opened.closeSync();
      throw error;
    }
  };
  return {
    instance,
    file,
    stagingDirectory,
    connect: () => connect(1), // with 1, `runLong` is the same as `run`
    connectWriter: () => connect(threads),
    async syncDirectory() {
      try {
        await fsyncDescriptor(directoryDescriptor);
      } catch (error) {
        onFatalError(error);
        throw error;
      }
    },
    readFile: (offset, length) => readAt(fileDescriptor, offset, length),
    fileSize: () => fstatSync(fileDescriptor).size,
    hasWal: () => existsSync(pathOfWal(file)),
    close() {
      instance.closeSync();
      closeSync(fileDescriptor);
      closeSync(directoryDescriptor);
    },
  };
}

async function createInstance(
  directory: string,
  memoryLimit: string,
  threads: number,
): Promise<DuckDBInstance> {
  try {
    return await DuckDBInstance.create(':memory:', {
      threads: String(threads),
      memory_limit: memoryLimit,
      temp_directory: join(directory, 'tmp'),
      autoinstall_known_extensions: 'false',
      autoload_known_extensions: 'false',
      // With late materialization, queries for the newest 100 records (logs.all) were up to 20 times slower.
      late_materialization_max_rows: '0',
      // With this optimizer, a query with ORDER BY and LIMIT on one table misses rows while others are added to the table.
      // It does not apply to a union of tables, which most queries read, so they are as fast without it.
      disabled_optimizers: 'row_group_pruner',
      // No automatic checkpoints: one in the middle of a flush would delay other writers. Every writer calls the Checkpointer at
      // the end.
      checkpoint_threshold: '1TB',
      // Returns memory to the system soon after a flush. Otherwise DuckDB kept it: a fifth of the memory of the process.
      allocator_flush_threshold: '8MB',
      allocator_bulk_deallocation_flush_threshold: '16MB',
    });
  } catch (error) {
    throw new OperatorError(`cannot start the embedded store: ${(error as Error).message.split('\n')[0]}`);
  }
}

/**
 * Creates an instance for callers that attach the file read-only. Without the empty `temp_directory`, DuckDB would create `.tmp`
 * in the working directory.
 */
export function createReaderInstance(memoryLimit?: string): Promise<DuckDBInstance> {
  const limits: Record<string, string> = memoryLimit === undefined ? {} : { memory_limit: memoryLimit };
  return DuckDBInstance.create(':memory:', { ...limits, temp_directory: '' });
}

/**
 * Checks whether `openDatabase` could open an existing file. Throws the OperatorError that it would throw. Returns the damage that it
 * would repair. Only reads the file.
 */
export async function checkDatabaseFile(dataDirectory: string): Promise<Damage | undefined> {
  const file = join(resolve(dataDirectory), STORE_FILE);
  if (!existsSync(file)) return undefined;
  const instance = await createReaderInstance();
  const connection = await instance.connect();
  try {
    await attachFile(connection, file, dataDirectory, 'read_only');
    await checkSchemaVersion(connection, dataDirectory);
    return undefined;
  } catch (error) {
    const isDamaged = /Corrupt database file/.test((error as Error).message);
    const repairable = isDamaged
      ? await describeUnfinishedCheckpoint(file)
      : describeUnfinishedWrite(file, error);
    if (repairable === undefined) throw error;
    return repairable;
  } finally {
    connection.closeSync();
    instance.closeSync();
  }
}

async function attachFile(
  connection: DuckDBConnection,
  file: string,
  dataDirectory: string,
  option = "storage_version 'latest'",
): Promise<void> {
  try {
    await connection.run(`attach ${quote(file)} as logs (${option})`);
    await connection.run('use logs');
  } catch (error) {
    const message = (error as Error).message;
    if (/could not set lock/i.test(message)) {
      const owner = /PID (\d+)/.exec(message)?.[1];
      const who = owner === undefined ? 'another process' : `another process (PID ${owner})`;
      throw new OperatorError(
        `the data directory ${dataDirectory} is in use by ${who}; stop it, or send requests to the running server with --url`,
      );
    }
    throw cannotOpen(file, dataDirectory, error);
  }
}

async function lockDown(connection: DuckDBConnection, stagingDirectory: string): Promise<void> {
  await connection.run("set global TimeZone = 'UTC'");
  await connection.run(`set global allowed_directories = [${quote(`${stagingDirectory}/`)}]`);
  await connection.run('set global enable_external_access = false');
  await connection.run('set global lock_configuration = true');
}
