// Splits the records of a table by their time window, so that each window becomes a part of its own.
import type { LogKind } from '../../domain/log-columns.ts';
import { readContent } from './checksum.ts';
import type { DuckDBConnection } from './driver.ts';
import type { Run } from './part-writer.ts';
import { type TimeWindow, windowsOf } from './time-windows.ts';

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
  if (whole.since === undefined || whole.until === undefined) return [];
  const [first, ...others] = windowsOf(whole.since, whole.until, nowMicros);
  if (first === undefined) return [];
  if (others.length === 0) return [{ window: first, from: table, content: whole }];
  const runs: WindowRun[] = [];
  for (const window of [first, ...others]) {
    const except = {
      sql: `timestamp < make_timestamp(${window.start}::bigint) or timestamp >= make_timestamp(${window.end}::bigint)`,
      values: {},
    };
    const content = await readContent(connection, kind, table, undefined, except);
    if (content.rows > 0) runs.push({ window, from: table, except, content });
  }
  return runs;
}
