// Appends batches directly to parts, without the spool and memtables. One call is one transaction. Each insert batch is at most one
// row group and is sorted as a flush sorts it.
//
// The records go to parts that this transaction creates, never to one that queries can see: while DuckDB adds rows to a partial
// row group, concurrent queries with ORDER BY and LIMIT miss other rows of that table.
import type { LogKind } from '../../domain/log-columns.ts';
import type { LogLines } from '../../domain/log-line.ts';
import { batchLines, type InsertBatch } from '../batch-lines.ts';
import type { DuckDBConnection } from './driver.ts';
import { MAX_BATCH_BYTES, nameOf, PART_ORDER, type Parts, ROW_GROUP_ROWS } from './parts.ts';
import type { Staging } from './staging.ts';

/** A part with fewer rows than this is replaced instead of left behind, so that many small files do not create many small parts. */
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
    if (!kinds.has(kind)) await startPart(connection, parts, kind);
    kinds.add(kind);
    const part = await parts.writablePart(kind, { extendPartial: true });
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

/** Starts a new part. If the newest part is small, the new one takes over its rows. */
async function startPart(connection: DuckDBConnection, parts: Parts, kind: LogKind): Promise<void> {
  const newest = parts.list(kind).at(-1);
  const started = await parts.startPart(kind);
  const isSmall = newest !== undefined && !newest.isCompacted && newest.rows < SMALL_PART_ROWS;
  if (!isSmall || parts.isReserved(newest)) return;
  await connection.run(`insert into ${nameOf(started)} from ${nameOf(newest)}`);
  await parts.replace([newest], { ...started, rows: newest.rows });
}
