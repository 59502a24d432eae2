// Takes whole files into the sealed tables: everything of one call in one transaction, in units of one row group sorted
// by project and time, as a seal lays them.

import type { LogKind } from '../../domain/log-columns.ts';
import type { LogLines } from '../../domain/log-line.ts';
import { batchLines, type LineBatch } from '../batch-lines.ts';
import type { DuckDBConnection } from './driver.ts';
import { nameOf, PART_ORDER, type Parts, ROW_GROUP_ROWS } from './parts.ts';
import type { Staging } from './staging.ts';

/** A unit of large records ends before it fills a row group: it has to be sorted in memory. */
export const MAX_MEMTABLE_BYTES = 128 * 1024 * 1024;

/** So that many small files do not become as many tables. Within one call, nothing is written twice however many it has. */
const SMALL_PART_ROWS = 15_360;

export function appendLines(
  connection: DuckDBConnection,
  parts: Parts,
  staging: Staging,
  batches: AsyncIterable<LogLines>,
): Promise<ReadonlySet<LogKind>> {
  const kinds = new Set<LogKind>();
  // While DuckDB inserts one batch, the next one is gathered.
  let inserting: Promise<void> = Promise.resolve();
  const insert = async ({ kind, count, chunks }: LineBatch) => {
    await inserting;
    const part = await parts.writablePart(kind, kinds.has(kind) ? Number.POSITIVE_INFINITY : SMALL_PART_ROWS);
    kinds.add(kind);
    await parts.changeRows(part, count);
    inserting = staging.insert(connection, kind, nameOf(part), chunks, PART_ORDER);
    inserting.catch(() => {}); // awaited before the next insert, or before the commit
  };
  return parts.transaction(async () => {
    try {
      for await (const batch of batchLines(batches, ROW_GROUP_ROWS, MAX_MEMTABLE_BYTES)) await insert(batch);
    } finally {
      await inserting;
    }
    return kinds;
  });
}
