// Removes the oldest records of all kinds until the file uses few enough blocks. Free blocks do not count: new records fill them.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import type { Checkpointer } from './checkpoint.ts';
import { type DuckDBConnection, DuckDBTimestampValue } from './driver.ts';
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
  /** Called after the records from before this time were removed. */
  readonly onRemoved: (micros: bigint) => void;
}

/** Returns the number of removed records. Leaves memtables and unverified parts as they are. */
export async function evictOldest(dependencies: EvictionDependencies, maxBytes: number): Promise<number> {
  const { rewriter, rewriteWriter, checkpointer, onRemoved } = dependencies;
  let removed = 0;
  for (let round = 0; round < MAX_ROUNDS; round++) {
    // Without a checkpoint, removed records would still count, and too many would be removed.
    if (!(await rewriter.withFile(() => checkpointer.run()))) break;
    const usedBytes = await measureUsedBytes(dependencies);
    if (usedBytes <= maxBytes) break;
    const micros = await findTimeAt(dependencies, Math.max(MIN_SHARE, 1 - maxBytes / usedBytes));
    if (micros === undefined) break;
    const last = new DuckDBTimestampValue(micros);
    // The record at this time is removed too: otherwise records with equal timestamps would never be removed.
    removed += await removeRecords(rewriter, rewriteWriter, {
      sql: 'timestamp <= $last',
      values: { last },
    });
    onRemoved(micros + 1n);
  }
  return removed;
}

/** The blocks of the file that are in use. */
export async function measureUsedBytes({
  fileWriter,
  rewriter,
}: Pick<EvictionDependencies, 'fileWriter' | 'rewriter'>): Promise<number> {
  const result = await rewriter.withFile(() =>
    fileWriter.runAndReadAll(
      "select used_blocks * block_size from pragma_database_size() where database_name = 'logs'",
    ),
  );
  return Number(result.value(0, 0));
}

/** The time for which the records up to it are about this share of all records in the file. Undefined if the file has none. */
async function findTimeAt(
  { fileWriter, rewriter }: EvictionDependencies,
  share: number,
): Promise<bigint | undefined> {
  const kinds = LOG_KINDS.map(kind => `select timestamp from logs.${kind}_logs`);
  const sql = `select approx_quantile(epoch_us(timestamp), ${Math.min(1, share)})::bigint from (${kinds.join(' union all ')})`;
  const result = await rewriter.withFile(() => fileWriter.runAndReadAll(sql));
  const value = result.value(0, 0);
  return value === null ? undefined : BigInt(String(value));
}
