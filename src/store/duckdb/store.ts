// The embedded store: one DuckDB file and tables in memory before it, a pool of readers, and writers that take turns.
import { stat, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { LOG_KINDS } from '../../domain/log-columns.ts';
import { Mutex } from '../../system/mutex.ts';
import { ReadWriteLock } from '../../system/read-write-lock.ts';
import { type QueryLimits, storeClosed } from '../query-queue.ts';
import type { BoundValues, QueryOptions, QueryResult, SavedQuery, Store, StoreEvents } from '../store.ts';
import { appendLines } from './append.ts';
import { Checkpointer } from './checkpoint.ts';
import { Compactor } from './compaction.ts';
import { ConnectionPool } from './connection-pool.ts';
import { deleteBefore } from './delete-expired.ts';
import { Memtables } from './memtable.ts';
import { NewestRecords } from './newest-records.ts';
import { FILE_NAME, openDatabase, SNAPSHOT_SQL } from './open-database.ts';
import { nameOf, Parts } from './parts.ts';
import { PatternCheck } from './pattern-check.ts';
import { runSavedQuery, validateSavedQuery } from './saved-query.ts';
import { Staging } from './staging.ts';

/** Records are in memory several times on their way: as they are read, as they are handed over, as they are inserted. */
const FOLD_BYTES = 4 * 1024 * 1024;

export interface DuckDBStoreOptions extends QueryLimits {
  readonly dataDirectory: string;
  /** As DuckDB writes sizes: 500MB, 2GB. */
  readonly memoryLimit: string;
  /** Threads of the engine; as many as there are cores unless given. */
  readonly threads?: number | undefined;
}

export async function openDuckDBStore(options: DuckDBStoreOptions, events: StoreEvents = {}): Promise<Store> {
  const database = await openDatabase(options.dataDirectory, options.memoryLimit, options.threads);
  const viewLock = new ReadWriteLock();
  const readers = await ConnectionPool.open(
    await Promise.all(Array.from({ length: options.queryConcurrency }, () => database.connect())),
    { ...options, viewLock, snapshotSql: SNAPSHOT_SQL },
  );
  const [fileWriter, memoryWriter, filler] = [
    await database.connect(),
    await database.connect(),
    await database.connect(),
  ];
  const parts = await Parts.open(fileWriter);
  const patterns = new PatternCheck(readers);
  const fileMutex = new Mutex();
  const checkpoints = new Checkpointer({
    connection: fileWriter,
    hasDiskSpace: async () =>
      (await lacksRoom(options.dataDirectory, await bytesOfLog(options.dataDirectory))) === undefined,
    onLost: error => events.storeLost?.(error),
  });
  const newestRecords = new NewestRecords(readers);
  const memtables = await Memtables.open({
    memoryWriter,
    fileWriter,
    parts,
    checkpoints,
    fileMutex,
    staging: new Staging(database.intakeFolder, 'fold'),
    viewLock,
    events,
    onApplied: (kind, table) => newestRecords.update(memoryWriter, kind, table),
    requireDiskSpace: bytes => requireDiskSpace(options.dataDirectory, bytes),
  });
  let calls = 0;
  const merging = new Compactor({
    filler,
    fileWriter,
    fileMutex,
    parts,
    checkpoints,
    requireDiskSpace: async rows =>
      requireDiskSpace(options.dataDirectory, await bytesOf(options.dataDirectory, parts, rows)),
    countOperations: () => calls,
  });
  const appendStaging = new Staging(database.intakeFolder, 'append');
  for (const kind of LOG_KINDS) {
    const last = parts.list(kind).findLast(({ rows }) => rows > 0);
    if (last === undefined) continue;
    await newestRecords.update(fileWriter, kind, nameOf(last)); // where the newest nearly always is
    await newestRecords.update(fileWriter, kind, `logs.${kind}_logs`);
  }
  let closing: Promise<void> | undefined;
  /** Closing waits for what has begun, and nothing begins after it. */
  const unlessClosing = <T>(work: () => Promise<T>): Promise<T> =>
    closing === undefined ? work() : Promise.reject(storeClosed());

  return {
    name: 'duckdb',

    async validateQuery(query: SavedQuery, sample: BoundValues): Promise<string | undefined> {
      const { result } = await readers.run(reader => validateSavedQuery(reader.connection, query, sample));
      return result;
    },

    validatePattern: (pattern, call) => patterns.findFault(pattern, call),

    async query(query: SavedQuery, values: BoundValues, call?: QueryOptions): Promise<QueryResult> {
      calls++;
      const { result, queuedMs, executedMs } = await readers.run(
        async reader => runSavedQuery(await reader.prepare(query.sql), query, values),
        call,
      );
      return { ...result, queuedMs, executedMs };
    },

    newest: (kind, notAfter, project, call) => newestRecords.find(kind, notAfter, project, call),

    append: batches =>
      unlessClosing(() =>
        fileMutex.run(async () => {
          const kinds = await appendLines(fileWriter, parts, appendStaging, batches);
          await checkpoints.run();
          for (const kind of kinds) await newestRecords.update(fileWriter, kind, `logs.${kind}_logs`);
        }),
      ),

    applyBatchBytes: FOLD_BYTES,
    apply(records) {
      calls++;
      return unlessClosing(() => memtables.apply(records));
    },
    flushedUpTo: kind => memtables.sealed(kind),
    seenUpTo: kind => memtables.sealed(kind), // what is in memory goes with the process
    flush: kinds => unlessClosing(() => memtables.flush(kinds)),
    deleteBefore: micros =>
      unlessClosing(() =>
        fileMutex.run(async () => {
          await requireDiskSpace(options.dataDirectory, 0);
          const deleted = await deleteBefore(fileWriter, parts, checkpoints, micros);
          newestRecords.forgetBefore(micros);
          return deleted;
        }),
      ),

    compact: now => unlessClosing(() => merging.compactNext(now)),

    close(): Promise<void> {
      closing ??= (async () => {
        await merging.close();
        await memtables.close();
        await fileMutex.idle();
        await readers.close();
        for (const writer of [memoryWriter, fileWriter, filler]) writer.closeSync();
        database.instance.closeSync();
      })();
      return closing;
    },
  };
}

/** For the row group that a checkpoint writes anew since something was added to it, and for the blocks it writes in. */
const SPARE_BYTES = 64 * 1024 * 1024;

/**
 * DuckDB gives up on its file until the next start where a commit or a checkpoint meets a full disk, so none is begun
 * without room for it: once in the log, once in the file.
 */
async function requireDiskSpace(folder: string, bytes: number): Promise<void> {
  const lack = await lacksRoom(folder, 2 * bytes);
  if (lack !== undefined) throw new Error(lack);
}

async function lacksRoom(folder: string, bytes: number): Promise<string | undefined> {
  const { bavail, bsize } = await statfs(folder);
  const [left, needed] = [bavail * bsize, bytes + SPARE_BYTES];
  return left < needed ? `the disk has ${left} bytes left, and ${needed} are needed` : undefined;
}

/** What is committed and not yet in the file. */
async function bytesOfLog(folder: string): Promise<number> {
  const found = await stat(join(folder, `${FILE_NAME}.wal`)).catch(() => undefined);
  return found?.size ?? 0;
}

/** About what so many rows take in the file. */
async function bytesOf(folder: string, parts: Parts, rows: number): Promise<number> {
  const { size } = await stat(join(folder, FILE_NAME));
  const all = LOG_KINDS.flatMap(kind => parts.list(kind)).reduce((sum, table) => sum + table.rows, 0);
  return Math.ceil((size * rows) / Math.max(1, all));
}
