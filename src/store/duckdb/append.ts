// Appends batches directly to parts, without the spool and memtables. One call is one transaction. Each insert batch is at most one
// row group and is sorted as a flush sorts it.
import type { LogKind } from '../../domain/log-columns.ts';
import type { LogLines } from '../../domain/log-line.ts';
import { batchLines, type InsertBatch } from '../batch-lines.ts';
import type { DuckDBConnection } from './driver.ts';
import { MAX_BATCH_BYTES, nameOf, PART_ORDER, type Parts, ROW_GROUP_ROWS } from './parts.ts';
import type { Staging } from './staging.ts';

/**
 * Adding rows to a part whose last row group is partial makes DuckDB rewrite that row group. The first batch of a kind accepts
 * this cost if the part has fewer rows than this, so that many small files do not create as many small parts. Later batches of
 * the call go to the same part, because within one transaction DuckDB rewrites nothing.
 */
const SMALL_PART_ROWS = 15_360;

/** Returns the kinds of the appended records. Must be called by the holder of the file mutex. */
export function appendLines(
  connection: DuckDBConnection,
  parts: Parts,
  staging: Staging,
  batches: AsyncIterable<LogLines>,
): Promise<ReadonlySet<LogKind>> {
  const kinds = new Set<LogKind>();
  // While DuckDB inserts one batch, the next one is read.
  let inserting: Promise<void> = Promise.resolve();
  const insert = async ({ kind, count, chunks }: InsertBatch) => {
    await inserting;
    const part = await parts.writablePart(kind, kinds.has(kind) ? Number.POSITIVE_INFINITY : SMALL_PART_ROWS);
    kinds.add(kind);
    await parts.adjustRowCount(part, count);
    inserting = staging.insert(connection, kind, nameOf(part), chunks, PART_ORDER);
    inserting.catch(() => {}); // awaited before the next insert, or before the commit
  };
  return parts.transaction(async () => {
    try {
      for await (const batch of batchLines(batches, ROW_GROUP_ROWS, MAX_BATCH_BYTES)) await insert(batch);
    } finally {
      await inserting;
    }
    return kinds;
  });
}
