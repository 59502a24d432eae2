// The embedded store: parts, which are files that are only read, memtables in front of them, a pool of connections for queries, and
// jobs in the background. This file opens its components and implements the Store contract with them.
import { join } from 'node:path';
import { DendroError } from '../../domain/errors.ts';
import { LOG_KINDS } from '../../domain/log-columns.ts';
import { type Clock, systemClock } from '../../system/clock.ts';
import { Mutex } from '../../system/mutex.ts';
import { OpenFile } from '../../system/open-file.ts';
import { bufferFile } from '../../system/tar.ts';
import { type QueryLimits, storeClosed } from '../query-queue.ts';
import type { Store, StoreCallbacks, StoreSnapshot, StoreStatistics } from '../store.ts';
import { appendLines, listLoads } from './append.ts';
import { ConnectionPool } from './connection-pool.ts';
import { type Database, type DatabaseOptions, openDatabase } from './database.ts';
import { isFatalError } from './errors.ts';
import { formatManifest, MANIFEST_FILE, type Manifest, PARTS_DIRECTORY } from './manifest.ts';
import { Memtables } from './memtables.ts';
import { Parts } from './parts.ts';
import { Queries } from './queries.ts';
import { Rewriter } from './rewriter.ts';

// Small batches cost time, because planning an insert takes 10 ms. Large ones cost memory: a batch is read, staged and inserted.
const APPLY_BATCH_BYTES = 8 * 1024 * 1024;

export interface DuckDBStoreOptions extends QueryLimits, DatabaseOptions {
  /** No part becomes larger than this. Default: no limit. */
  readonly maxPartBytes?: number | undefined;
  /** How many parts there can be. Default: as many as the limit of open files allows. */
  readonly maxParts?: number | undefined;
  /** A rewritten part with at least this many records gets a text filter. Tests set their own. */
  readonly minFilteredRecords?: number | undefined;
  readonly clock?: Clock | undefined;
  /** Forget the parts that were set aside, and convert the rest of an old store if some of it is damaged. */
  readonly acceptLoss?: boolean | undefined;
}

export async function openDuckDBStore(
  options: DuckDBStoreOptions,
  callbacks: StoreCallbacks = {},
): Promise<Store> {
  const database = await openDatabase(options);
  try {
    return await openStoreOn(database, options, callbacks);
  } catch (error) {
    database.close();
    throw error;
  }
}

async function openStoreOn(
  database: Database,
  options: DuckDBStoreOptions,
  callbacks: StoreCallbacks,
): Promise<Store> {
  const { clock = systemClock } = options;
  const observe = callbacks.observe ?? (() => {});
  const onFatalError = (error: unknown) => callbacks.storeFailed?.(error);
  const parts = await Parts.open({ ...options, database, observe, onFatalError });
  const pool = new ConnectionPool({ ...options, connect: () => database.connect() });
  // Queries have connections of their own. One connection inserts into memtables; each of the others writes parts.
  const memoryWriter = await database.connect();
  const flushWriter = await database.connect();
  const appendWriter = await database.connect();
  const jobWriter = await database.connect();
  const stagingFileOf = (name: string) => join(database.stagingDirectory, `${name}.lines`);
  const memtables = await Memtables.open(parts, {
    ...{ memoryWriter, flushWriter, callbacks, clock, stagingFile: stagingFileOf('apply') },
  });
  const queries = new Queries(pool, memtables, parts, options.queryTimeoutSeconds);
  /** How many queries and batches the store has received. Jobs in the background pause while this grows. */
  let operations = 0;
  const rewriter = new Rewriter(parts, jobWriter, clock, () => operations, observe);
  await rewriter.eraseFromRestored();
  const appends = new Mutex();
  const appendContext = { parts, appendWriter, clock, stagingFile: stagingFileOf('append') };
  let closing: Promise<void> | undefined;
  const rethrow = (error: unknown): never => {
    if (!isFatalError(error)) throw error;
    onFatalError(error);
    throw new DendroError('unavailable', 'the store has failed and must be opened again; retry later', {
      cause: error,
    });
  };
  /** Closing cancels jobs in the background, waits for other work that has started, and rejects new work. */
  const unlessClosing = <T>(work: () => Promise<T>): Promise<T> =>
    closing === undefined ? work().catch(rethrow) : Promise.reject(storeClosed());
  const close = async () => {
    await appends.idle();
    for (const component of [rewriter, pool, memtables, parts]) await component.close();
    for (const connection of [memoryWriter, flushWriter, appendWriter, jobWriter]) connection.closeSync();
    database.close();
  };

  return {
    name: 'duckdb',
    applyBatchBytes: APPLY_BATCH_BYTES,
    readStatistics: () => readStatistics(pool, memtables, parts),
    preflight: async () => undefined,

    validateQuery: (query, rules) => queries.validate(query, rules),
    validatePattern: (pattern, options) => queries.validatePattern(pattern, options),
    query(query, values, options) {
      operations++;
      return queries.run(query, values, options).catch(rethrow);
    },
    newestTimestamp: (kind, notAfter, project, options) =>
      queries.findNewest(kind, notAfter, project, options),

    append: (batches, content) =>
      unlessClosing(() => appends.run(() => appendLines(appendContext, batches, content))),
    findLoadsOfSize: (source, fileBytes) =>
      listLoads(parts.manifest, load => load.source === source && load.fileBytes === fileBytes),
    apply(records) {
      operations++;
      return unlessClosing(() => memtables.apply(records));
    },
    flush: kinds => unlessClosing(() => memtables.flush(kinds)),
    flushedUpTo: kind => parts.storedUpTo(kind),
    durableUpTo: kind => parts.storedUpTo(kind), // a restart loses the memtables; the spool has their records

    maintain: task => unlessClosing(() => rewriter.maintain(task)),
    eraseProject: scope => unlessClosing(() => rewriter.erase(scope)),
    snapshot(omitted) {
      if (closing !== undefined) throw storeClosed();
      return takeSnapshot(database.partsDirectory, parts.manifest, omitted);
    },

    close() {
      closing ??= close();
      return closing;
    },
  };
}

function readStatistics(pool: ConnectionPool, memtables: Memtables, parts: Parts): StoreStatistics {
  const { active, immutable } = memtables.counts;
  return {
    waitingQueries: pool.queue.waiting,
    runningQueries: pool.queue.running,
    isReachable: true,
    embedded: {
      fileBytes: parts.bytes,
      activeMemtables: active,
      immutableMemtables: immutable,
      partCountByKind: new Map(LOG_KINDS.map(kind => [kind, parts.list(kind).length])),
      setAsideParts: parts.manifest.setAside.length,
    },
  };
}

function takeSnapshot(
  partsDirectory: string,
  manifest: Manifest,
  omitted: ReadonlySet<string>,
): StoreSnapshot {
  const open: OpenFile[] = [];
  const close = async () => {
    await Promise.all(open.map(file => file.close()));
  };
  try {
    for (const { file, sha256 } of manifest.parts)
      if (!omitted.has(sha256))
        open.push(new OpenFile(`${partsDirectory}/${file}`, `${PARTS_DIRECTORY}/${file}`));
  } catch (error) {
    void close();
    throw error;
  }
  const files = [bufferFile(MANIFEST_FILE, formatManifest(manifest)), ...open];
  return { files, close };
}
