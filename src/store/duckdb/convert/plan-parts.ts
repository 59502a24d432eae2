// Decides which records of a kind become one part: those of one time window or, if they are too many or too large, of a shorter span.
import { addContents, type TableContent } from '../checksum.ts';
import { MAX_LARGE_BYTES, MAX_ROWS } from '../compaction.ts';
import { RECENT_WINDOW, type TimeWindow, windowOf } from '../time-windows.ts';

/** In microseconds: the shortest window, an hour, a minute, a second, a millisecond, a microsecond. */
const WIDTHS: readonly bigint[] = [RECENT_WINDOW, 3_600_000_000n, 60_000_000n, 1_000_000n, 1_000n, 1n];

/** What the records have whose timestamps are in spans of equal width, by the start of the span. */
export type Spans = ReadonlyMap<bigint, TableContent>;

export interface PlannedPart extends TimeWindow {
  readonly content: TableContent;
}

export interface PlanOptions {
  readonly nowMicros: bigint;
  readonly maxPartBytes: number;
  /** Reads the records of a range again, in spans of this width. */
  readonly readSpans: (width: bigint, range: TimeWindow) => Promise<Spans>;
}

/** `spans` are as long as the shortest window. Returns the parts in the order of time. */
export async function planParts(spans: Spans, options: PlanOptions): Promise<readonly PlannedPart[]> {
  const parts: PlannedPart[] = [];
  for (const next of await cutSpans(spans, 0, options)) {
    const last = parts.at(-1);
    const merged = last && { ...last, end: next.end, content: addContents(last.content, next.content) };
    if (merged !== undefined && isOneWindow(merged, next, options) && isSmallEnough(merged.content, options))
      parts[parts.length - 1] = merged;
    else parts.push(next);
  }
  return parts;
}

/** Cuts spans that are too large for one part into shorter ones. */
async function cutSpans(spans: Spans, level: number, options: PlanOptions): Promise<PlannedPart[]> {
  const [width = 1n, nextWidth] = WIDTHS.slice(level);
  const cut: PlannedPart[] = [];
  for (const [start, content] of [...spans].sort(([one], [other]) => (one < other ? -1 : 1))) {
    const span = { start, end: start + width, content };
    if (nextWidth === undefined || isSmallEnough(content, options)) cut.push(span);
    else cut.push(...(await cutSpans(await options.readSpans(nextWidth, span), level + 1, options)));
  }
  return cut;
}

function isOneWindow(one: TimeWindow, other: TimeWindow, { nowMicros }: PlanOptions): boolean {
  return windowOf(one.start, nowMicros).start === windowOf(other.start, nowMicros).start;
}

function isSmallEnough(content: TableContent, { maxPartBytes }: PlanOptions): boolean {
  const { rows, textBytes, largeTextBytes } = content;
  return rows <= MAX_ROWS && largeTextBytes <= MAX_LARGE_BYTES && textBytes <= maxPartBytes;
}
