// The time windows that keep parts short: no part has records of two windows. So a query of a short range needs few parts,
// retention deletes whole files, and a late record does not widen the span of a part with recent ones.
//
// Windows start at multiples of their length since 1970. Recent records have windows of half a week, because usage.api-counts reads all
// projects of up to seven days. Older ones have windows of 112 days, because a query for a small project reads a block of every part.
import type { LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_DAY } from '../../system/clock.ts';
import { addContents, EMPTY, readContentBy } from './checksum.ts';
import type { DuckDBConnection } from './driver.ts';
import type { Run } from './part-writer.ts';

/** Every window starts and ends at a multiple of this. */
export const RECENT_WINDOW = (7n * MICROS_PER_DAY) / 2n;
const OLD_WINDOW = 112n * MICROS_PER_DAY;
/** Records of windows that ended before this age are old. */
const RECENT_AGE = 7n * MICROS_PER_DAY;

/** A range of timestamps in Unix microseconds. */
export interface TimeWindow {
  readonly start: bigint;
  /** Exclusive. */
  readonly end: bigint;
}

/** The window of a timestamp. It changes when the timestamp becomes old: an old window contains whole recent windows. */
export function windowOf(micros: bigint, nowMicros: bigint): TimeWindow {
  const recentSince = floorTo(nowMicros - RECENT_AGE, RECENT_WINDOW);
  const length = micros >= recentSince ? RECENT_WINDOW : OLD_WINDOW;
  const start = floorTo(micros, length);
  const end = start + length;
  if (length === RECENT_WINDOW || end <= recentSince) return { start, end };
  return { start, end: recentSince }; // the rest of this window is still recent
}

/** The multiple of `length` at or before the timestamp of a record, as SQL. */
export function startSql(length: bigint = RECENT_WINDOW): string {
  const micros = 'epoch_us(timestamp)';
  return `${micros} - ((${micros} % ${length} + ${length}) % ${length})`; // also right for times before 1970
}

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

function floorTo(micros: bigint, length: bigint): bigint {
  const rest = micros % length;
  return micros - (rest < 0n ? rest + length : rest);
}
