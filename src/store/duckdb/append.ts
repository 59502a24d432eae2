// Takes whole files into the sealed tables: everything of one call in one transaction, in units of one row group sorted
// by project and time, as a seal lays them.
import type { DuckDBConnection } from '@duckdb/node-api';
import type { LogLines } from '../../log-line.ts';
import type { LogKind } from '../../log-record.ts';
import type { Staging } from './staging.ts';

/** As many rows as a row group of DuckDB holds: a unit of exactly this size is never rewritten by a later one. */
export const ROW_GROUP_ROWS = 122_880;
/** A unit of large records ends earlier: it has to be sorted in memory. */
export const MAX_UNIT_BYTES = 128 * 1024 * 1024;

export const SEALED_ORDER = 'order by project, timestamp';

interface Unit {
  rows: number;
  bytes: number;
  parts: Uint8Array[];
}

export async function appendLines(
  connection: DuckDBConnection,
  staging: Staging,
  batches: AsyncIterable<LogLines>,
): Promise<ReadonlySet<LogKind>> {
  const units = new Map<LogKind, Unit>();
  const kinds = new Set<LogKind>();
  // While DuckDB works on one unit the next is gathered.
  let inserting: Promise<void> = Promise.resolve();
  const insert = async (kind: LogKind, { parts }: Unit) => {
    units.delete(kind);
    await inserting;
    inserting = staging.insert(connection, kind, `logs.${kind}_logs`, Buffer.concat(parts), SEALED_ORDER);
    inserting.catch(() => {}); // it is awaited before the next, or before the commit
  };
  await connection.run('begin transaction');
  try {
    for await (const { kind, count, lines } of batches) {
      kinds.add(kind);
      const unit = units.get(kind) ?? { rows: 0, bytes: 0, parts: [] };
      units.set(kind, unit);
      unit.rows += count;
      unit.bytes += lines.length;
      unit.parts.push(lines);
      if (unit.rows >= ROW_GROUP_ROWS || unit.bytes >= MAX_UNIT_BYTES) await insert(kind, unit);
    }
    for (const [kind, unit] of units) if (unit.rows > 0) await insert(kind, unit);
    await inserting;
    await connection.run('commit');
    return kinds;
  } catch (error) {
    await inserting.catch(() => {});
    await connection.run('rollback').catch(() => {}); // a failed commit has rolled back already; the first error counts
    throw error;
  }
}
