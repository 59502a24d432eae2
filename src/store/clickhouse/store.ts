// The distributed store: ClickHouse, as a single node or as a cluster. The local disk is only a buffer: the
// outbox keeps a block until ClickHouse has acknowledged it, and the spool keeps a record until its whole segment can be deleted.
import { join, resolve } from 'node:path';
import { offsetAfterLines } from '../../domain/log-line.ts';
import { Mutex } from '../../system/mutex.ts';
import type { ClickHouseUrl } from '../clickhouse-url.ts';
import { findNewestTimestamp } from '../newest-timestamp.ts';
import { type QueryLimits, storeClosed } from '../query-queue.ts';
import type { SpooledLines, Store, StoreCallbacks } from '../store.ts';
import { appendBlocks, removeStagedBlocks } from './append.ts';
import { eraseProject } from './erase-project.ts';
import { Hosts } from './hosts.ts';
import { Outbox } from './outbox.ts';
import { findTableProblem } from './preflight.ts';
import { Reader } from './reader.ts';
import { runSavedQuery, validatePattern, validateSavedQuery } from './saved-query.ts';
import { Writer } from './writer.ts';

/** Every batch becomes at least one part on the server, and a few large parts are cheaper to merge than many small ones. */
const APPLY_BATCH_BYTES = 16 * 1024 * 1024;

/** Connections to each host besides those of queries. One each for: pings; inserts; an append or an erasure; KILL QUERY. */
const EXTRA_CONNECTIONS = 4;

/**
 * How long closing waits for a running `apply`. Then it aborts the insert; the block stays in the outbox for the next start.
 * Closing waits for a running `append` first, without this limit.
 */
const CLOSE_TIMEOUT_MS = 5_000;

export interface ClickHouseStoreOptions extends QueryLimits {
  /** Contains the spool and the outbox. */
  readonly dataDirectory: string;
  readonly clickhouse: ClickHouseUrl;
}

/** Sends nothing to ClickHouse, so that a server starts and accepts records while ClickHouse is unreachable. */
export async function openClickHouseStore(
  { clickhouse, ...options }: ClickHouseStoreOptions,
  callbacks: StoreCallbacks = {},
): Promise<Store> {
  const directory = join(resolve(options.dataDirectory), 'clickhouse');
  const outbox = await Outbox.open(directory);
  await removeStagedBlocks(directory);
  const hosts = new Hosts(clickhouse, options.queryConcurrency + EXTRA_CONNECTIONS);
  const reader = new Reader(hosts, options);
  const writer = new Writer(hosts, clickhouse.writer, callbacks);
  const applyMutex = new Mutex(); // for one kind at a time: all kinds share the progress file of the outbox
  const appendMutex = new Mutex();
  let closing: Promise<void> | undefined;
  const runUnlessClosed = (mutex: Mutex, work: () => Promise<void>): Promise<void> =>
    closing === undefined ? mutex.run(work) : Promise.reject(storeClosed());
  const close = async () => {
    await reader.close();
    await appendMutex.idle();
    const abortInserts = setTimeout(() => void hosts.close(), CLOSE_TIMEOUT_MS);
    await applyMutex.idle();
    clearTimeout(abortInserts);
    await hosts.close();
  };

  return {
    name: 'clickhouse',
    applyBatchBytes: APPLY_BATCH_BYTES,
    readStatistics: () => ({
      waitingQueries: reader.queue.waiting,
      runningQueries: reader.queue.running,
      isReachable: hosts.isReachable,
      clickhouse: { isUpByHost: hosts.isUpByHost, outboxRecords: outbox.pendingRecords },
    }),
    preflight: () => findTableProblem(reader, writer),
    validateQuery: (query, rules) => validateSavedQuery(reader, query, rules),
    validatePattern: (pattern, options) => validatePattern(reader, pattern, options),
    query: (query, values, options) => runSavedQuery(reader, query, values, options),
    // Caches nothing, because other processes insert records too.
    newestTimestamp(kind, notAfter, project, options) {
      const sql = `select if(count() = 0, null, max(timestamp)) as newest from ${kind}_logs
        where timestamp >= {start:Int64} and timestamp <= {end:Int64}
          and ({project:Nullable(String)} is null or project = ifNull({project:Nullable(String)}, ''))`;
      const query: Store['query'] = (...args) => runSavedQuery(reader, ...args, 'newest');
      return findNewestTimestamp(query, sql, notAfter, project, options);
    },
    async append(batches) {
      await runUnlessClosed(appendMutex, () => appendBlocks(writer, directory, batches));
      return undefined;
    },
    findLoadsOfSize: () => [],
    apply: records => runUnlessClosed(applyMutex, () => applyRecords(outbox, writer, records)),
    flushedUpTo: kind => outbox.acknowledgedUpTo(kind),
    durableUpTo: kind => outbox.durableUpTo(kind),
    eraseProject: scope =>
      closing === undefined ? eraseProject(hosts, clickhouse, scope) : Promise.reject(storeClosed()),
    flush: async () => {}, // applied records are already in ClickHouse
    maintain: async () => 0, // ClickHouse merges parts itself, and the TTL of the tables expires records

    // Without the records in ClickHouse itself.
    snapshot: () => ({ files: outbox.snapshot(), close: async () => {} }),

    close() {
      closing ??= close();
      return closing;
    },
  };
}

/**
 * The outbox protocol, which stores every record once:
 * 1. Resend the block of an earlier attempt, with the same bytes and insert deduplication token, and acknowledge it.
 * 2. Skip the records that ClickHouse has acknowledged.
 * 3. Write the other records to the outbox as one block.
 * 4. Insert that block and acknowledge it. If this fails, the next call resends it in step 1.
 */
async function applyRecords(outbox: Outbox, writer: Writer, records: SpooledLines): Promise<void> {
  const { kind, firstSequence, count, lines } = records;
  const pending = outbox.pending(kind);
  if (pending !== undefined) {
    await writer.insert(pending);
    await outbox.acknowledge(pending);
  }
  const skipped = Math.max(0, outbox.acknowledgedUpTo(kind) - firstSequence);
  if (skipped >= count) return;
  const block = await outbox.add({
    kind,
    firstSequence: firstSequence + skipped,
    count: count - skipped,
    lines: lines.subarray(offsetAfterLines(lines, skipped)),
  });
  await writer.insert(block);
  await outbox.acknowledge(block);
}
