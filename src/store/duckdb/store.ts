// The embedded store: one DuckDB file of parts, memtables in front of it, a pool of connections for queries, and jobs in the
// background (compaction, vacuum). This file opens its components and implements the Store contract with them.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import { Mutex } from '../../system/mutex.ts';
import { ReadWriteLock } from '../../system/read-write-lock.ts';
import { type QueryLimits, storeClosed } from '../query-queue.ts';
import type { EraseScope, Store, StoreCallbacks, StoreStatistics } from '../store.ts';
import { appendLines } from './append.ts';
import { Checkpointer } from './checkpoint.ts';
import { Compactor } from './compaction.ts';
import { ConnectionPool } from './connection-pool.ts';
import { deleteBefore } from './delete-expired.ts';
import { DiskSpace } from './disk-space.ts';
import { dropLeftoverFiller, eraseProject } from './erase-project.ts';
import { evictOldest, measureUsedBytes } from './evict-oldest.ts';
import { FlushVerification } from './flush-verification.ts';
import { IdleKinds } from './idle-kinds.ts';
import { findLoadsOfSize } from './loads.ts';
import { Memtables } from './memtables.ts';
import { removeMetadataBackup, saveMetadata } from './metadata-backup.ts';
import { NewestTimestamps } from './newest-timestamps.ts';
import { type Database, openDatabase, SNAPSHOT_SQL } from './open-database.ts';
import { PartRewriter } from './part-rewriter.ts';
import { Parts } from './parts.ts';
import { PatternCheck } from './pattern-check.ts';
import type { StoreConnection } from './run-long.ts';
import { runSavedQuery, validateSavedQuery } from './saved-query.ts';
import { Snapshots } from './snapshot.ts';
import { Staging } from './staging.ts';
import { UncachedReader } from './uncached-reader.ts';
import { Vacuum } from './vacuum.ts';

/** Small, because a batch is in memory several times: it is read, written to the staging file and inserted. */
const APPLY_BATCH_BYTES = 4 * 1024 * 1024;

export interface DuckDBStoreOptions extends QueryLimits {
  readonly dataDirectory: string;
  /** In DuckDB's notation: 500MB, 2GB. */
  readonly memoryLimit: string;
  /** Threads of DuckDB. Default: the number of cores. */
  readonly threads?: number | undefined;
}

/** Connections that write. Queries have their own, in the connection pool. */
interface Writers {
  /** Writes to the file: flushes, appends, retention, checkpoints. Only the holder of the file mutex uses it. */
  readonly fileWriter: StoreConnection;
  /** Writes to memtables and their views. Only Memtables uses it, and NewestTimestamps within `apply`. */
  readonly memoryWriter: StoreConnection;
  /** Fills the temporary tables of compaction, vacuum and removals in long transactions, without the file mutex. */
  readonly rewriteWriter: StoreConnection;
}

interface Components extends Writers {
  readonly database: Database;
  readonly pool: ConnectionPool;
  readonly fileMutex: Mutex;
  readonly disk: DiskSpace;
  readonly parts: Parts;
  readonly checkpointer: Checkpointer;
  readonly newestTimestamps: NewestTimestamps;
  readonly memtables: Memtables;
  readonly reader: UncachedReader;
  readonly verification: FlushVerification;
  readonly rewriter: PartRewriter;
  readonly operations: OperationCount;
  readonly queryTimeoutMs: number;
  readonly snapshots: Snapshots;
}

/** How many queries and batches the store has received. Compaction, vacuum and removals pause while this grows. */
interface OperationCount {
  total: number;
}

export async function openDuckDBStore(
  options: DuckDBStoreOptions,
  callbacks: StoreCallbacks = {},
): Promise<Store> {
  return createStore(await openComponents(options, callbacks));
}

async function openComponents(options: DuckDBStoreOptions, callbacks: StoreCallbacks): Promise<Components> {
  const database = await openDatabase(
    options,
    error => callbacks.storeInvalidated?.(error),
    log => callbacks.observe?.({ type: 'store_wal_truncated', ...log }),
  );
  const viewLock = new ReadWriteLock();
  const connect = () => database.connect();
  const pool = await ConnectionPool.open({ ...options, connect, viewLock, snapshotSql: SNAPSHOT_SQL });
  const writers = await openWriters(database);
  const { fileWriter, memoryWriter } = writers;
  const fileMutex = new Mutex();
  const disk = new DiskSpace(options.dataDirectory);
  const operations: OperationCount = { total: 0 };
  await dropLeftoverFiller(fileWriter); // the table with which an erasure overwrites free blocks
  const parts = await Parts.open(fileWriter, database.syncDirectory);
  const checkpointer = new Checkpointer({
    connection: fileWriter,
    hasDiskSpace: () => disk.canCheckpoint(),
    syncDirectory: database.syncDirectory,
    saveMetadata: () => saveMetadata(fileWriter, database.file, database.readFile),
    removeMetadataBackup: () => removeMetadataBackup(database.file),
  });
  const newestTimestamps = new NewestTimestamps(pool);
  await newestTimestamps.load(fileWriter, parts);
  const reader = new UncachedReader({ database, fileWriter, fileMutex });
  const verification = new FlushVerification({
    ...{ database, fileWriter, fileMutex, parts, checkpointer, reader, callbacks },
    requireDiskSpace: bytes => disk.require(bytes),
  });
  const memtables = await Memtables.open({
    memoryWriter,
    fileWriter,
    parts,
    checkpointer,
    fileMutex,
    viewLock,
    callbacks,
    verification,
    staging: new Staging(database.stagingDirectory, 'apply'),
    onApplied: (kind, table) => newestTimestamps.update(memoryWriter, kind, table),
    requireDiskSpace: bytes => disk.require(bytes),
  });
  const rewriter = new PartRewriter({
    ...writers,
    fileMutex,
    parts,
    checkpointer,
    reader,
    queryTimeoutMs: options.queryTimeoutSeconds * 1000,
    onMismatch: (kind, error) =>
      callbacks.observe?.({ type: 'verification_failed', kind, error, outcome: 'copy dropped' }),
    requireDiskSpace: rows => disk.requireForRows(rows, parts.countRows()),
    countOperations: () => operations.total,
  });
  return {
    ...writers,
    database,
    pool,
    fileMutex,
    disk,
    parts,
    checkpointer,
    newestTimestamps,
    memtables,
    reader,
    verification,
    rewriter,
    operations,
    queryTimeoutMs: options.queryTimeoutSeconds * 1000,
    snapshots: new Snapshots({
      ...{ database, fileMutex, checkpointer, parts },
      flushedUpTo: kind => memtables.flushedUpTo(kind),
    }),
  };
}

async function openWriters(database: Database): Promise<Writers> {
  return {
    fileWriter: await database.connectWriter(),
    memoryWriter: await database.connectWriter(),
    rewriteWriter: await database.connect(), // not connectWriter: a rewrite can run during a checkpoint (run-long.ts)
  };
}

function createStore(components: Components): Store {
  const { pool, parts, fileMutex, fileWriter, newestTimestamps, memtables, verification } = components;
  const { rewriter, operations, snapshots } = components;
  const patterns = new PatternCheck(pool);
  const idleKinds = new IdleKinds(parts);
  const compactor = new Compactor({ rewriter, fileWriter, parts, idleKinds });
  const vacuum = new Vacuum({ rewriter, fileWriter, parts, idleKinds });
  const appendUnderMutex = createAppend(components);
  const deleteUnderMutex = createDelete(components);
  const eraseAndReload = async (scope: EraseScope) => {
    try {
      return await eraseProject(components, scope);
    } finally {
      await rewriter.withFileMutex(() => newestTimestamps.reload(fileWriter)); // also after a failure: some records may be erased
    }
  };
  const evictionDependencies = {
    ...components,
    onRemoved: (micros: bigint) => rewriter.withFileMutex(() => newestTimestamps.reload(fileWriter, micros)),
  };
  let closing: Promise<void> | undefined;
  /** Closing cancels rewrites of parts, waits for other work that has started, and rejects new work. */
  const unlessClosing = <T>(work: () => Promise<T>): Promise<T> =>
    closing === undefined ? work() : Promise.reject(storeClosed());

  return {
    name: 'duckdb',
    applyBatchBytes: APPLY_BATCH_BYTES,
    readStatistics: () => readStatistics(components),

    async validateQuery(query, rules) {
      return (await pool.run(({ connection }) => validateSavedQuery(connection, query, rules))).result;
    },
    validatePattern: (pattern, options) => patterns.findProblem(pattern, options),
    async query(query, values, options) {
      operations.total++;
      const { result, queuedMs, executedMs } = await pool.run(
        queryConnection => runSavedQuery(queryConnection, query, values, options?.maxBytes),
        options,
      );
      return { ...result, queuedMs, executedMs };
    },
    newestTimestamp: (kind, notAfter, project, options) =>
      newestTimestamps.find(kind, notAfter, project, options),

    append: (batches, content) => unlessClosing(() => appendUnderMutex(batches, content)),
    findLoadsOfSize: (source, fileBytes) =>
      unlessClosing(() => fileMutex.run(() => findLoadsOfSize(fileWriter, source, fileBytes))),
    apply(records) {
      operations.total++;
      return unlessClosing(() => memtables.apply(records));
    },
    flush: kinds => unlessClosing(() => memtables.flush(kinds)),
    flushedUpTo: kind => memtables.flushedUpTo(kind),
    verifiedUpTo: kind => verification.verifiedUpTo(kind, memtables.flushedUpTo(kind)),
    verifyFlushed: readSpooled => unlessClosing(() => verification.verifyPending(readSpooled)),
    durableUpTo: kind => memtables.flushedUpTo(kind), // a restart loses the memtables; the spool has their records

    deleteBefore: micros => unlessClosing(() => deleteUnderMutex(micros)),
    eraseProject: scope => unlessClosing(() => eraseAndReload(scope)),
    usedBytes: () => unlessClosing(() => measureUsedBytes(components)),
    evictOldest: readLimits => unlessClosing(() => evictOldest(evictionDependencies, readLimits)),
    compact: nowMicros => unlessClosing(() => compactor.run(nowMicros)),
    vacuum: () => unlessClosing(() => vacuum.run()),
    snapshot: onSnapshot => unlessClosing(() => snapshots.take(onSnapshot)),

    close() {
      closing ??= closeComponents(components);
      return closing;
    },
  };
}

function readStatistics({ pool, disk, memtables, parts }: Components): StoreStatistics {
  const { active, immutable } = memtables.counts;
  return {
    waitingQueries: pool.queue.waiting,
    runningQueries: pool.queue.running,
    embedded: {
      fileBytes: disk.readFileBytes(),
      activeMemtables: active,
      immutableMemtables: immutable,
      partCountByKind: new Map(LOG_KINDS.map(kind => [kind, parts.list(kind).length])),
    },
  };
}

function createAppend(components: Components): Store['append'] {
  const { database, fileMutex, fileWriter, parts, checkpointer, newestTimestamps } = components;
  const staging = new Staging(database.stagingDirectory, 'append');
  return (batches, content) =>
    fileMutex.run(async () => {
      const result = await appendLines(fileWriter, parts, staging, batches, content);
      if ('earlier' in result) return result.earlier; // the content was loaded before, so nothing was stored
      await checkpointer.run();
      for (const kind of result.kinds) await newestTimestamps.update(fileWriter, kind, `logs.${kind}_logs`);
      return undefined;
    });
}

function createDelete(components: Components): Store['deleteBefore'] {
  const { fileMutex, disk, fileWriter, parts, checkpointer, newestTimestamps } = components;
  return micros =>
    fileMutex.run(async () => {
      await disk.require(0); // a deletion needs only RESERVE_BYTES (disk-space.ts)
      try {
        return await deleteBefore(fileWriter, parts, checkpointer, micros);
      } finally {
        await newestTimestamps.reload(fileWriter, micros);
      }
    });
}

async function closeComponents(components: Components): Promise<void> {
  const { rewriter, memtables, reader, fileMutex, pool, database, snapshots, checkpointer } = components;
  await snapshots.close();
  await rewriter.close();
  await memtables.close();
  await reader.close();
  // If this checkpoint fails, the next start reads the write-ahead log.
  if (database.hasWal()) await fileMutex.run(() => checkpointer.run()).catch(() => {});
  await fileMutex.idle();
  await pool.close();
  const { memoryWriter, fileWriter, rewriteWriter } = components;
  for (const writer of [memoryWriter, fileWriter, rewriteWriter]) writer.closeSync();
  database.close();
}
