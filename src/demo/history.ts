// The history of the synthetic platform: the records of the last eight days (seven, and one more before them), checked by the
// intake rules and appended to a store.
import type { LogKind } from '../domain/log-columns.ts';
import { type LogLines, toLogLines } from '../domain/log-line.ts';
import type { LogRecord } from '../domain/log-record.ts';
import { createIdSequence, isRejection, toRecord } from '../logs/record.ts';
import type { Store } from '../store/store.ts';
import type { DemoRecord } from './demo-record.ts';
import type { Random } from './random.ts';
import { createTraffic } from './traffic.ts';

const DAYS = 7;
const DAY_MS = 86_400_000;
const PERIOD_MS = 60_000;
const BATCH_RECORDS = 20_000;

export interface HistoryOptions {
  /** The end of the history and start of the demo, in Unix milliseconds. */
  readonly endMs: number;
  /** 1 is the normal amount of traffic. */
  readonly scale: number;
  readonly random: Random;
}

/** Appends the history to the store. Returns the number of records. */
export async function fillHistory(store: Store, options: HistoryOptions): Promise<number> {
  const all = createHistory(options);
  let count = 0;
  for (const kind of ['edge', 'function_edge'] as const) {
    const records = all.filter(record => record.kind === kind);
    count += records.length;
    await store.append(toBatches(kind, records, options.endMs));
  }
  return count;
}

function createHistory({ endMs, scale, random }: HistoryOptions): DemoRecord[] {
  const records: DemoRecord[] = [];
  // One day more, because the first bucket of a 7-day window starts up to a day before the window.
  for (let fromMs = endMs - (DAYS + 1) * DAY_MS; fromMs < endMs; fromMs += PERIOD_MS) {
    const toMs = Math.min(fromMs + PERIOD_MS, endMs);
    for (const record of createTraffic({ fromMs, toMs, demoStartMs: endMs, scale }, random))
      records.push(record);
  }
  return records;
}

async function* toBatches(
  kind: LogKind,
  records: readonly DemoRecord[],
  endMs: number,
): AsyncGenerator<LogLines> {
  const nowMicros = endMs * 1000;
  const context = { nowMicros, retentionDays: DAYS + 2, createId: createIdSequence(nowMicros) };
  for (let from = 0; from < records.length; from += BATCH_RECORDS) {
    const batch: LogRecord[] = [];
    for (const { record } of records.slice(from, from + BATCH_RECORDS)) {
      const result = toRecord(record, kind, context);
      if (!isRejection(result)) batch.push(result);
    }
    yield toLogLines(kind, batch);
  }
}
