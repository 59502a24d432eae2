// The history of the synthetic platform: seven days of records, checked by the intake rules and appended to a store.
import type { LogKind } from '../domain/log-columns.ts';
import { type LogLines, toLogLines } from '../domain/log-line.ts';
import type { LogRecord } from '../domain/log-record.ts';
import { isRejection, toRecord } from '../logs/record.ts';
import type { Store } from '../store/store.ts';
import type { Random } from './random.ts';
import type { SentRecord } from './sent-record.ts';
import { createTraffic } from './traffic.ts';

const DAYS = 7;
const DAY_MS = 86_400_000;
const PERIOD_MS = 60_000;
const BATCH_RECORDS = 20_000;

export interface History {
  /** The end of the history, in Unix milliseconds. */
  readonly nowMs: number;
  /** 1 is the normal amount of traffic. */
  readonly scale: number;
  readonly random: Random;
}

/** Returns the number of records. */
export async function fillHistory(store: Store, history: History): Promise<number> {
  const all = createHistory(history);
  let count = 0;
  for (const kind of ['edge', 'function_edge'] as const) {
    const records = all.filter(record => record.kind === kind);
    count += records.length;
    await store.append(toBatches(kind, records, history.nowMs));
  }
  return count;
}

function createHistory({ nowMs, scale, random }: History): SentRecord[] {
  const records: SentRecord[] = [];
  // One day more, because the first bucket of a 7-day window starts up to a day before the window.
  for (let fromMs = nowMs - (DAYS + 1) * DAY_MS; fromMs < nowMs; fromMs += PERIOD_MS) {
    const toMs = Math.min(fromMs + PERIOD_MS, nowMs);
    for (const record of createTraffic({ fromMs, toMs, startMs: nowMs, scale }, random)) records.push(record);
  }
  return records;
}

async function* toBatches(
  kind: LogKind,
  records: readonly SentRecord[],
  nowMs: number,
): AsyncGenerator<LogLines> {
  const rules = { nowMicros: nowMs * 1000, retentionDays: DAYS + 2 };
  for (let from = 0; from < records.length; from += BATCH_RECORDS) {
    const batch: LogRecord[] = [];
    for (const { record } of records.slice(from, from + BATCH_RECORDS)) {
      const result = toRecord(record, kind, rules);
      if (!isRejection(result)) batch.push(result);
    }
    yield toLogLines(kind, batch);
  }
}
