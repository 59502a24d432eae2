// Splits the records of a table by their time window, so that each window becomes a part of its own.
import type { LogKind } from '../../domain/log-columns.ts';
import { addContents, EMPTY, readContentBy } from './checksum.ts';
import type { DuckDBConnection } from './driver.ts';
import type { Run } from './part-writer.ts';
import { startSql, type TimeWindow, windowOf } from './time-windows.ts';

export interface WindowRun extends Run {
  readonly window: TimeWindow;
}

/** Returns one run for each window that has records. Usually there is one. */
export async function splitByWindow(
  connection: DuckDBConnection,
  kind: LogKind,
  table: string,
  nowMicros: bigint,
): Promise<WindowRun[]> {
  const runs = new Map<bigint, WindowRun>();
  for (const [start, content] of await readContentBy(startSql(), connection, kind, table)) {
    const window = windowOf(start, nowMicros);
    const total = addContents(runs.get(window.start)?.content ?? EMPTY, content);
    runs.set(window.start, { window, from: table, except: outside(window), content: total });
  }
  return [...runs.values()];
}

function outside({ start, end }: TimeWindow): Run['except'] {
  return {
    sql: `timestamp < make_timestamp(${start}::bigint) or timestamp >= make_timestamp(${end}::bigint)`,
    values: {},
  };
}
