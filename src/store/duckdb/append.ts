// Appends batches, such as those of a file that `dendro ingest` loads, directly to parts, without the spool and memtables. One
// call is one transaction. Each insert batch is at most one row group and is sorted as a flush sorts it.
import type { LogKind } from '../../domain/log-columns.ts';
import type { LogLines } from '../../domain/log-line.ts';
import { batchLines, type InsertBatch } from '../batch-lines.ts';
import type { EarlierLoad, LoadContent } from '../store.ts';
import type { DuckDBConnection } from './driver.ts';
import { findLoad, saveLoad } from './loads.ts';
import { MAX_SORT_BYTES, nameOf, PART_ORDER, type Parts, ROW_GROUP_ROWS } from './parts.ts';
import type { RunStatement } from './run-long.ts';
import type { Staging } from './staging.ts';

/**
 * Adding rows to a part whose last row group is partial makes DuckDB rewrite that row group. The first batch of a kind accepts
 * this cost if the part has fewer rows than this, so that many small calls do not create as many small parts. Later batches of
 * the call go to the same part until it is full: within one transaction, DuckDB does not rewrite a partial row group.
 */
const SMALL_PART_ROWS = 15_360;

/** What `appendLines` did: it stored records of these kinds, or found that the content was loaded before. */
export type AppendResult = { readonly kinds: ReadonlySet<LogKind> } | { readonly earlier: EarlierLoad };

/** Must be called by the holder of the file mutex. */
export async function appendLines(
  connection: DuckDBConnection,
  parts: Parts,
  staging: Staging,
  batches: AsyncIterable<LogLines>,
  content: LoadContent | undefined,
): Promise<AppendResult> {
  const kinds = new Set<LogKind>();
  let records = 0;
  // While DuckDB inserts one batch, the next one is read.
  let inserting: Promise<void> = Promise.resolve();
  const insert = async ({ kind, count, chunks }: InsertBatch) => {
    await inserting;
    const part = await parts.writablePart(kind, kinds.has(kind) ? Number.POSITIVE_INFINITY : SMALL_PART_ROWS);
    kinds.add(kind);
    records += count;
    await parts.adjustRowCount(part, count);
    const run: RunStatement = (sql, values) => connection.run(sql, values);
    inserting = staging.insert(run, kind, nameOf(part), chunks, PART_ORDER);
    inserting.catch(() => {}); // awaited before the next insert, or before the commit
  };
  try {
    await parts.transaction(async () => {
      try {
        for await (const batch of batchLines(batches, ROW_GROUP_ROWS, MAX_SORT_BYTES)) await insert(batch);
      } finally {
        await inserting;
      }
      if (content !== undefined && records > 0) await checkAndSaveLoad(connection, content, records);
    });
  } catch (error) {
    if (error instanceof AlreadyLoaded) return { earlier: error.load };
    throw error;
  }
  return { kinds };
}

/** Thrown to roll the transaction back: the digest of a stream is known only after all of its records were inserted. */
class AlreadyLoaded extends Error {
  readonly load: EarlierLoad;

  constructor(load: EarlierLoad) {
    super('the content was loaded before');
    this.load = load;
  }
}

/** Throws AlreadyLoaded if the content was loaded before and `again` is false. Otherwise saves in `loads` that it is loaded. */
async function checkAndSaveLoad(
  connection: DuckDBConnection,
  { identify, again, nowMicros }: LoadContent,
  records: number,
): Promise<void> {
  const identity = identify();
  const earlier = await findLoad(connection, identity);
  if (earlier !== undefined && !again) throw new AlreadyLoaded(earlier);
  await saveLoad(connection, identity, records, nowMicros);
}
