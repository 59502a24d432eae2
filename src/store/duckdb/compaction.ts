// Merges parts, so that the records of a project are in one place. A flush sorts only the records that arrived together, so a
// project that writes little has a few records in each of many parts, and a query for it reads a block of all of them. Only parts
// of the same time window are merged (time-windows.ts).
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { ROW_GROUP_ROWS } from './checksum.ts';
import type { StoreContext } from './context.ts';
import type { Part } from './parts.ts';
import type { Rewriter } from './rewriter.ts';
import { windowOf } from './time-windows.ts';

/** Minimum number of sorted runs for a merge, while records arrive in the window and when none have for IDLE_MS. */
const MIN_RUNS = 16;
const MIN_RUNS_WHEN_IDLE = 2;
const IDLE_MS = 30_000;
/** No merge creates a larger part: it would take too long, and a merge that a stop interrupts starts again from the beginning. */
export const MAX_ROWS = 128 * ROW_GROUP_ROWS;
/** A part has at most this many times as many rows as the smaller ones it is merged with: few rows are rewritten to add a few. */
const MAX_SIZE_RATIO = 4;
/**
 * DuckDB holds 2,048 consecutive records in memory when it reads or writes a part. Compaction puts records of a project next to each
 * other, and each can have 1 MiB. So the large records of one part (LARGE_RECORD_BYTES) have at most this many bytes in total.
 */
export const MAX_LARGE_BYTES = 64 * 1024 * 1024;
/** A kind whose compaction failed, such as on a full disk, is skipped for this time, so that other kinds are compacted. */
const RETRY_MS = 600_000;

export class Compactor {
  readonly #context: StoreContext;
  readonly #rewriter: Rewriter;
  readonly #retryAt = new Map<LogKind, number>();

  constructor(context: StoreContext, rewriter: Rewriter) {
    this.#context = context;
    this.#rewriter = rewriter;
  }

  /** Merges parts of one window, if there are enough of them. Returns whether there was work. */
  run(): Promise<boolean> {
    return this.#rewriter.run(async () => {
      const [first, ...others] = this.#choose();
      if (first === undefined) return false;
      try {
        await this.#rewriter.rewrite([first, ...others]);
        return true;
      } catch (error) {
        this.#retryAt.set(first.entry.kind, performance.now() + RETRY_MS);
        throw error;
      }
    });
  }

  #choose(): readonly Part[] {
    const now = performance.now();
    for (const kind of LOG_KINDS) {
      if (now < (this.#retryAt.get(kind) ?? 0)) continue;
      for (const parts of this.#groupByWindow(kind)) {
        const isIdle = parts.every(({ addedAt }) => now - addedAt >= IDLE_MS);
        const minRuns = isIdle ? MIN_RUNS_WHEN_IDLE : MIN_RUNS;
        const chosen = chooseParts(parts, minRuns, this.#context.maxPartBytes);
        if (chosen.length > 0) return chosen;
      }
    }
    return [];
  }

  #groupByWindow(kind: LogKind): Iterable<readonly Part[]> {
    const now = this.#context.clock();
    const groups = new Map<bigint, Part[]>();
    for (const part of this.#context.parts.list(kind)) {
      const { start } = windowOf(part.entry.until, now);
      groups.set(start, [...(groups.get(start) ?? []), part]);
    }
    return groups.values();
  }
}

/** Returns parts of similar size that have at least `minRuns` sorted runs and may be merged, or none. `parts` are of one window. */
export function chooseParts(parts: readonly Part[], minRuns: number, maxBytes: number): readonly Part[] {
  const smallestFirst = [...parts].sort((a, b) => a.entry.records - b.entry.records);
  for (let start = 0; start < parts.length; start++) {
    const chosen: Part[] = [];
    let [rows, bytes, largeBytes, runs] = [0, 0, 0, 0];
    for (const part of smallestFirst.slice(start)) {
      const { entry } = part;
      if (rows > 0 && (entry.records > rows * MAX_SIZE_RATIO || rows + entry.records > MAX_ROWS)) break;
      if (bytes + entry.bytes > maxBytes || largeBytes + entry.largeTextBytes > MAX_LARGE_BYTES) break;
      chosen.push(part);
      rows += entry.records;
      bytes += entry.bytes;
      largeBytes += entry.largeTextBytes;
      runs += entry.runs;
    }
    if (runs >= minRuns) return chosen;
  }
  return [];
}
