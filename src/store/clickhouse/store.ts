// The distributed store: ClickHouse, one node or a cluster. Records lie there; here lie only those that are on their way,
// in the spool and in frozen blocks.
import { join, resolve } from 'node:path';
import { offsetAfterLines } from '../../domain/log-line.ts';
import { Mutex } from '../../system/mutex.ts';
import type { ClickHouseUrl } from '../clickhouse-url.ts';
import { type QueryLimits, storeClosed } from '../query-queue.ts';
import type { SpooledLines, Store, StoreEvents } from '../store.ts';
import { appendBlocks, removeLeftovers } from './append.ts';
import { findPatternError } from './errors.ts';
import { Hosts } from './hosts.ts';
import { findNewestRecord } from './newest-record.ts';
import { Outbox } from './outbox.ts';
import { runPreflight } from './preflight.ts';
import { Reader } from './reader.ts';
import { runSavedQuery, validateSavedQuery } from './saved-query.ts';
import { Writer } from './writer.ts';

/** A part on the server for each fold: few large ones cost it less. */
const FOLD_BYTES = 16 * 1024 * 1024;

export interface ClickHouseStoreOptions extends QueryLimits {
  /** Of the spool, tokens and frozen blocks. */
  readonly dataDirectory: string;
  readonly clickhouse: ClickHouseUrl;
}

/** What the endpoints' SQL puts before a pattern, so that it means what it means to the embedded store. */
const PATTERN_FLAGS = '(?-is)';

/** Connections besides those of queries: a ping, an insert, an append. */
const FURTHER_CONNECTIONS = 4;

/** Asks nothing of ClickHouse yet: it may be away, and records are taken in all the same. */
export async function openClickHouseStore(
  options: ClickHouseStoreOptions,
  watch: StoreEvents = {},
): Promise<Store> {
  const folder = join(resolve(options.dataDirectory), 'clickhouse');
  const blocks = await Outbox.open(folder);
  await removeLeftovers(folder);
  const hosts = new Hosts(options.clickhouse, options.queryConcurrency + FURTHER_CONNECTIONS);
  const reader = new Reader(hosts, options);
  const writer = new Writer(hosts, options.clickhouse.writer, watch);
  const folds = new Mutex();
  const appends = new Mutex();
  let closing: Promise<void> | undefined;
  const unlessClosing = <T>(work: () => Promise<T>): Promise<T> =>
    closing === undefined ? work() : Promise.reject(storeClosed());

  const foldNext = async ({ kind, firstSequence, count, lines }: SpooledLines) => {
    const left = blocks.pending(kind);
    if (left !== undefined) {
      await writer.insert(left);
      await blocks.acknowledge(left);
    }
    const before = Math.max(0, blocks.acknowledgedUpTo(kind) - firstSequence);
    if (before >= count) return;
    const rest = lines.subarray(offsetAfterLines(lines, before));
    const block = await blocks.add({
      kind,
      firstSequence: firstSequence + before,
      count: count - before,
      lines: rest,
    });
    await writer.insert(block);
    await blocks.acknowledge(block);
  };

  return {
    name: 'clickhouse',
    applyBatchBytes: FOLD_BYTES,
    isReachable: () => hosts.isReachable,
    preflight: () => runPreflight(reader, writer),
    validateQuery: (query, sample) => validateSavedQuery(reader, query, sample),

    async validatePattern(pattern, call) {
      const sql = `select match('', concat('${PATTERN_FLAGS}', {pattern:String}))`;
      try {
        await reader.query({ sql, parameters: { pattern }, purpose: 'pattern' }, call);
        return undefined;
      } catch (error) {
        const fault = findPatternError(error, PATTERN_FLAGS);
        if (fault === undefined) throw error;
        return fault;
      }
    },

    query: (query, values, call) => runSavedQuery(reader, query, values, call),
    newest: (kind, notAfter, project, call) => findNewestRecord(reader, kind, notAfter, project, call),
    append: batches => unlessClosing(() => appends.run(() => appendBlocks(writer, folder, batches))),
    apply: records => unlessClosing(() => folds.run(() => foldNext(records))),
    flushedUpTo: kind => blocks.acknowledgedUpTo(kind),
    seenUpTo: kind => blocks.queuedUpTo(kind),
    flush: async () => {}, // whatever was folded is
    deleteBefore: async () => 0, // the tables' TTL does it

    close(): Promise<void> {
      closing ??= (async () => {
        await reader.close();
        await appends.idle();
        // A block under way may hang on a host that is gone; it is frozen, and sent again at the next start.
        const patience = setTimeout(() => writer.close(), CLOSE_PATIENCE_MS);
        await folds.idle();
        clearTimeout(patience);
        await hosts.close();
      })();
      return closing;
    },
  };
}

const CLOSE_PATIENCE_MS = 5_000;
