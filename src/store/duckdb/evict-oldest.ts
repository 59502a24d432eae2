// Removes the oldest records of all kinds until the file uses few enough blocks. Free blocks do not count: new records fill them.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { EvictionLimits } from '../store.ts';
import type { Checkpointer } from './checkpoint.ts';
import { type DuckDBConnection, DuckDBTimestampValue } from './driver.ts';
import { dropLeftoverFiller } from './erase-project.ts';
import type { PartRewriter } from './part-rewriter.ts';
import { removeRecords } from './remove-records.ts';

/** Records differ in size, so the first estimate can remove too little. */
const MAX_ROUNDS = 5;
/** At least this share of the records is removed in a round, so that each round makes progress. */
const MIN_SHARE = 0.01;

export interface EvictionDependencies {
  readonly rewriter: PartRewriter;
  readonly rewriteWriter: DuckDBConnection;
  readonly fileWriter: DuckDBConnection;
  readonly checkpointer: Checkpointer;
  /** Called after each removal, even if it failed: records before this time may be gone. */
  readonly onRemoved: (micros: bigint) => Promise<void>;
}

/**
 * Implements Store.evictOldest. Leaves memtables and unverified parts as they are. Runs alone: the copy that a compaction writes
 * and the filler table of an erasure (erase-project.ts) would count as records, and too many would be removed.
 */
export function evictOldest(
  dependencies: EvictionDependencies,
  readLimits: () => Promise<EvictionLimits>,
): Promise<number> {
  const { rewriter, fileWriter } = dependencies;
  return rewriter.runAlone(async () => {
    await rewriter.withFileMutex(() => dropLeftoverFiller(fileWriter)); // left if an erasure could not drop it on a full disk
    return removeInRounds(dependencies, readLimits);
  });
}

async function removeInRounds(
  dependencies: EvictionDependencies,
  readLimits: () => Promise<EvictionLimits>,
): Promise<number> {
  const { rewriter, rewriteWriter, checkpointer, onRemoved } = dependencies;
  let removed = 0;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    // Without a checkpoint, removed records would still count, and too many would be removed.
    if (!(await rewriter.withFileMutex(() => checkpointer.run()))) break;
    // Read after the checkpoint, because the limits depend on the size of the write-ahead log, which a checkpoint empties.
    // If records were removed already, an error only ends the loop, because the caller has to get the number of removed records.
    const limits = await readLimits().catch(error => {
      if (removed === 0) throw error;
    });
    if (limits === undefined) break;
    const { maxBytes, targetBytes } = limits;
    const usedBytes = await measureUsedBytes(dependencies);
    if (usedBytes <= (round === 0 ? maxBytes : targetBytes)) break;
    const micros = await findTimeAt(dependencies, Math.max(MIN_SHARE, 1 - targetBytes / usedBytes));
    if (micros === undefined) break;
    const last = new DuckDBTimestampValue(micros);
    try {
      // `<=`, because `<` would match nothing if many of the oldest records have the same timestamp.
      removed += await removeRecords(rewriter, rewriteWriter, {
        sql: 'timestamp <= $last',
        values: { last },
      });
    } finally {
      await onRemoved(micros + 1n);
    }
  }
  return removed;
}

/**
 * The total size of the blocks of the file that are in use, in bytes. Also counts temporary tables, and tables that were dropped
 * since the last checkpoint.
 */
export async function measureUsedBytes({
  fileWriter,
  rewriter,
}: Pick<EvictionDependencies, 'fileWriter' | 'rewriter'>): Promise<number> {
  const result = await rewriter.withFileMutex(() =>
    fileWriter.runAndReadAll(
      "select used_blocks * block_size from pragma_database_size() where database_name = 'logs'",
    ),
  );
  return Number(result.value(0, 0));
}

/** Returns the timestamp up to which the file has about `share` of all its records. Undefined if the file has no records. */
async function findTimeAt(
  { fileWriter, rewriter }: EvictionDependencies,
  share: number,
): Promise<bigint | undefined> {
  const kinds = LOG_KINDS.map(kind => `select timestamp from logs.${kind}_logs`);
  const sql = `select approx_quantile(epoch_us(timestamp), ${Math.min(1, share)})::bigint from (${kinds.join(' union all ')})`;
  const result = await rewriter.withFileMutex(() => fileWriter.runAndReadAll(sql));
  const value = result.value(0, 0);
  return value === null ? undefined : BigInt(String(value));
}
