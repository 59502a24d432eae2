// Seven days of the synthetic platform, made at once. Records pass the same rules as any that arrive.

import type { LogKind } from '../domain/log-columns.ts';
import { type LogLines, toLogLines } from '../domain/log-line.ts';
import type { LogRecord } from '../domain/log-record.ts';
import { isRejection, toRecord } from '../logs/record.ts';
import type { Store } from '../store/store.ts';
import type { Random } from './random.ts';
import type { Shipped } from './shipped-record.ts';
import { shipStretch } from './traffic.ts';

const DAYS = 7;
const DAY_MS = 86_400_000;
const STRETCH_MS = 60_000;
const BATCH_RECORDS = 20_000;

export interface History {
  readonly nowMs: number;
  readonly scale: number;
  readonly random: Random;
}

/** Answers how many records were made. */
export async function fillHistory(store: Store, history: History): Promise<number> {
  const shipped = shipHistory(history);
  let count = 0;
  for (const kind of ['edge', 'function_edge'] as const) {
    const records = shipped.filter(each => each.kind === kind);
    count += records.length;
    await store.append(toBatches(kind, records, history.nowMs));
  }
  return count;
}

function shipHistory({ nowMs, scale, random }: History): Shipped[] {
  const shipped: Shipped[] = [];
  // The first buckets of a 7-day window begin up to a day before it.
  for (let fromMs = nowMs - (DAYS + 1) * DAY_MS; fromMs < nowMs; fromMs += STRETCH_MS) {
    const toMs = Math.min(fromMs + STRETCH_MS, nowMs);
    for (const each of shipStretch({ fromMs, toMs, startMs: nowMs, scale }, random)) shipped.push(each);
  }
  return shipped;
}

async function* toBatches(
  kind: LogKind,
  shipped: readonly Shipped[],
  nowMs: number,
): AsyncGenerator<LogLines> {
  const door = { nowMicros: nowMs * 1000, retentionDays: DAYS + 2 };
  for (let from = 0; from < shipped.length; from += BATCH_RECORDS) {
    const batch: LogRecord[] = [];
    for (const { record } of shipped.slice(from, from + BATCH_RECORDS)) {
      const result = toRecord(record, kind, door);
      if (!isRejection(result)) batch.push(result);
    }
    yield toLogLines(kind, batch);
  }
}
