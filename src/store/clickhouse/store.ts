// The distributed store: ClickHouse, one node or a cluster. Records lie there; here lie only those that are on their way,
// in the spool and in frozen blocks.
import { join, resolve } from 'node:path';
import { endOfLines } from '../../log-line.ts';
import type { ClickHouseAddress } from '../../store-address.ts';
import { storeClosed } from '../query-errors.ts';
import type { SpooledLines, Store, StoreWatch } from '../store.ts';
import { Turns } from '../turns.ts';
import { appendBlocks, removeLeftovers } from './append.ts';
import { patternFault } from './errors.ts';
import { findMissing } from './fitness.ts';
import { FrozenBlocks } from './frozen-blocks.ts';
import { Hosts } from './hosts.ts';
import { findNewest } from './newest.ts';
import { Reader, type ReaderLimits } from './reader.ts';
import { askSaved, findQuestionFault } from './saved-question.ts';
import { Writer } from './writer.ts';

/** A part on the server for each fold: few large ones cost it less. */
const FOLD_BYTES = 16 * 1024 * 1024;

export interface ClickHouseStoreOptions extends ReaderLimits {
  /** Of the spool, tokens and frozen blocks. */
  readonly dataFolder: string;
  readonly clickhouse: ClickHouseAddress;
}

/** What the endpoints' SQL puts before a pattern, so that it means what it means to the embedded store. */
const PATTERN_FLAGS = '(?-is)';

/** Connections besides those of queries: a ping, an insert, an append. */
const FURTHER_CONNECTIONS = 4;

/** Asks nothing of ClickHouse yet: it may be away, and records are taken in all the same. */
export async function openClickHouseStore(
  options: ClickHouseStoreOptions,
  watch: StoreWatch = {},
): Promise<Store> {
  const folder = join(resolve(options.dataFolder), 'clickhouse');
  const blocks = await FrozenBlocks.open(folder);
  await removeLeftovers(folder);
  const hosts = new Hosts(options.clickhouse, options.queryConcurrency + FURTHER_CONNECTIONS);
  const reader = new Reader(hosts, options);
  const writer = new Writer(hosts, options.clickhouse.writer, watch);
  const folds = new Turns();
  const appends = new Turns();
  let closing: Promise<void> | undefined;
  const unlessClosing = <T>(work: () => Promise<T>): Promise<T> =>
    closing === undefined ? work() : Promise.reject(storeClosed());

  const foldNext = async ({ kind, first, count, lines }: SpooledLines) => {
    const left = blocks.waiting(kind);
    if (left !== undefined) {
      await writer.insert(left);
      await blocks.settle(left);
    }
    const before = Math.max(0, blocks.settled(kind) - first);
    if (before >= count) return;
    const rest = lines.subarray(endOfLines(lines, before));
    const block = await blocks.freeze({ kind, first: first + before, count: count - before, lines: rest });
    await writer.insert(block);
    await blocks.settle(block);
  };

  return {
    name: 'clickhouse',
    foldBytes: FOLD_BYTES,
    isReachable: () => hosts.isReachable,
    findMissing: () => findMissing(reader, writer),
    findFault: (query, sample) => findQuestionFault(reader, query, sample),

    async findPatternFault(pattern, call) {
      const sql = `select match('', concat('${PATTERN_FLAGS}', {pattern:String}))`;
      try {
        await reader.ask({ sql, parameters: { pattern }, purpose: 'pattern' }, call);
        return undefined;
      } catch (error) {
        const fault = patternFault(error, PATTERN_FLAGS);
        if (fault === undefined) throw error;
        return fault;
      }
    },

    query: (query, values, call) => askSaved(reader, query, values, call),
    newest: (kind, notAfter, project, call) => findNewest(reader, kind, notAfter, project, call),
    append: batches => unlessClosing(() => appends.take(() => appendBlocks(writer, folder, batches))),
    fold: records => unlessClosing(() => folds.take(() => foldNext(records))),
    settled: kind => blocks.settled(kind),
    reached: kind => blocks.reached(kind),
    settle: async () => {}, // whatever was folded is
    deleteBefore: async () => 0, // the tables' TTL does it

    close(): Promise<void> {
      closing ??= (async () => {
        await reader.close();
        await appends.done();
        // A block under way may hang on a host that is gone; it is frozen, and sent again at the next start.
        const patience = setTimeout(() => writer.close(), CLOSE_PATIENCE_MS);
        await folds.done();
        clearTimeout(patience);
        await hosts.close();
      })();
      return closing;
    },
  };
}

const CLOSE_PATIENCE_MS = 5_000;
