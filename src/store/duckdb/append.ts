// Takes whole files into the sealed tables: everything of one call in one transaction, in units of one row group sorted
// by project and time, as a seal lays them.

import type { LogKind } from '../../domain/log-columns.ts';
import { type LogLines, offsetAfterLines } from '../../domain/log-line.ts';
import type { DuckDBConnection } from './driver.ts';
import { nameOf, PART_ORDER, type Parts, ROW_GROUP_ROWS } from './parts.ts';
import type { Staging } from './staging.ts';

/** A unit of large records ends before it fills a row group: it has to be sorted in memory. */
export const MAX_MEMTABLE_BYTES = 128 * 1024 * 1024;

/** So that many small files do not become as many tables. Within one call, nothing is written twice however many it has. */
const SMALL_TABLE_ROWS = 15_360;

interface Batch {
  rows: number;
  bytes: number;
  parts: Uint8Array[];
}

export function appendLines(
  connection: DuckDBConnection,
  sealed: Parts,
  staging: Staging,
  batches: AsyncIterable<LogLines>,
): Promise<ReadonlySet<LogKind>> {
  const units = new Map<LogKind, Batch>();
  const kinds = new Set<LogKind>();
  // While DuckDB works on one unit the next is gathered.
  let inserting: Promise<void> = Promise.resolve();
  const insert = async (kind: LogKind, { rows, parts }: Batch) => {
    units.delete(kind);
    await inserting;
    const table = await sealed.writablePart(
      kind,
      kinds.has(kind) ? Number.POSITIVE_INFINITY : SMALL_TABLE_ROWS,
    );
    kinds.add(kind);
    await sealed.changeRows(table, rows);
    inserting = staging.insert(connection, kind, nameOf(table), parts, PART_ORDER);
    inserting.catch(() => {}); // it is awaited before the next, or before the commit
  };
  return sealed.transaction(async () => {
    try {
      for await (const { kind, count, lines } of batches) {
        for (let [rest, left] = [lines, count]; left > 0; ) {
          const unit = units.get(kind) ?? { rows: 0, bytes: 0, parts: [] };
          units.set(kind, unit);
          const taken = Math.min(left, ROW_GROUP_ROWS - unit.rows);
          const part = taken === left ? rest : rest.subarray(0, offsetAfterLines(rest, taken));
          unit.rows += taken;
          unit.bytes += part.length;
          unit.parts.push(part);
          if (unit.rows === ROW_GROUP_ROWS || unit.bytes >= MAX_MEMTABLE_BYTES) await insert(kind, unit);
          [rest, left] = [rest.subarray(part.length), left - taken];
        }
      }
      for (const [kind, unit] of units) await insert(kind, unit);
    } finally {
      await inserting;
    }
    return kinds;
  });
}
