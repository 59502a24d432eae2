// Splits the records of a table by their time window, so that each window becomes a part of its own.
import type { LogKind } from '../../domain/log-columns.ts';
import { readContent } from './checksum.ts';
import type { DuckDBConnection } from './driver.ts';
import type { Run } from './part-writer.ts';
import { type TimeWindow, windowOf } from './time-windows.ts';

export interface WindowRun extends Run {
  readonly window: TimeWindow;
}

/** Returns one run for each window that has records, oldest first. Usually there is one. */
export async function splitByWindow(
  connection: DuckDBConnection,
  kind: LogKind,
  table: string,
  nowMicros: bigint,
): Promise<WindowRun[]> {
  const whole = await readContent(connection, kind, table);
  const runs: WindowRun[] = [];
  // Continues with the next record, not with the next window: there can be centuries without a record.
  for (let next = whole.since; next !== undefined && whole.until !== undefined; ) {
    const window = windowOf(next, nowMicros);
    if (runs.length === 0 && whole.until < window.end) return [{ window, from: table, content: whole }];
    const except = {
      sql: `timestamp < make_timestamp(${window.start}::bigint) or timestamp >= make_timestamp(${window.end}::bigint)`,
      values: {},
    };
    runs.push({
      window,
      from: table,
      except,
      content: await readContent(connection, kind, table, undefined, except),
    });
    next = await findOldestSince(connection, table, window.end);
  }
  return runs;
}

async function findOldestSince(
  connection: DuckDBConnection,
  table: string,
  micros: bigint,
): Promise<bigint | undefined> {
  const result = await connection.runAndReadAll(
    `select epoch_us(min(timestamp)) from ${table} where timestamp >= make_timestamp(${micros}::bigint)`,
  );
  const oldest = result.value(0, 0);
  return oldest === null ? undefined : BigInt(String(oldest));
}
