// Merges parts, so that the records of a project are in one place. A flush sorts only the records that arrived together, so a
// project that writes little has a few records in each of many parts, and a query for it reads a block of all of them. Only parts
// of the same time window are merged (time-windows.ts).
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { Clock } from '../../system/clock.ts';
import { ROW_GROUP_ROWS } from './checksum.ts';
import type { Part, Parts } from './parts.ts';
import type { Rewriter } from './rewriter.ts';
import { windowOf } from './time-windows.ts';

/** Minimum number of sorted runs for a merge, while records arrive in the window and when none have for IDLE_MS. */
const MIN_RUNS = 16;
const MIN_RUNS_WHEN_IDLE = 2;
const IDLE_MS = 30_000;
/** No merge creates a larger part: it would take too long, and a merge that a stop interrupts starts again from the beginning. */
export const MAX_ROWS = 128 * ROW_GROUP_ROWS;
/**
 * A part is merged with smaller ones only if it has at most this many times as many rows as they have together. So a merge does not
 * rewrite many rows to add a few.
 */
const MAX_SIZE_RATIO = 4;
/**
 * DuckDB holds 2,048 consecutive records in memory when it writes or reads a part. Compaction puts the records of a project
 * next to each other, so these could be 2,048 records of 1 MiB. Therefore the large records of one part (LARGE_RECORD_BYTES) have
 * at most this many bytes in total.
 */
export const MAX_LARGE_BYTES = 64 * 1024 * 1024;
/** A kind whose compaction failed, such as on a full disk, is skipped for this time, so that other kinds are compacted. */
const RETRY_MS = 600_000;

export interface CompactorDependencies {
  readonly rewriter: Rewriter;
  readonly parts: Parts;
  readonly clock: Clock;
  readonly maxPartBytes: number;
}

export class Compactor {
  readonly #dependencies: CompactorDependencies;
  readonly #retryAt = new Map<LogKind, number>();
  /** When the parts of each window were first seen as they are now. By kind and start of the window. */
  #unchanged: ReadonlyMap<string, { readonly parts: string; readonly since: number }> = new Map();

  constructor(dependencies: CompactorDependencies) {
    this.#dependencies = dependencies;
  }

  /** Merges parts of one window, if there are enough of them. Returns whether there was work. Call it regularly. */
  run(): Promise<boolean> {
    const { rewriter } = this.#dependencies;
    return rewriter.run(async () => {
      const chosen = this.#choose();
      const [first, ...others] = chosen;
      if (first === undefined) return false;
      try {
        await rewriter.rewrite([first, ...others]);
        return true;
      } catch (error) {
        this.#retryAt.set(first.entry.kind, performance.now() + RETRY_MS);
        throw error;
      }
    });
  }

  #choose(): readonly Part[] {
    const now = performance.now();
    const unchanged = new Map<string, { readonly parts: string; readonly since: number }>();
    let chosen: readonly Part[] = [];
    for (const kind of LOG_KINDS)
      for (const [window, parts] of this.#groupByWindow(kind)) {
        const key = `${kind} ${window}`;
        const files = parts.map(({ entry }) => entry.file).join(' ');
        const known = this.#unchanged.get(key);
        const since = known?.parts === files ? known.since : now;
        unchanged.set(key, { parts: files, since });
        if (chosen.length > 0 || now < (this.#retryAt.get(kind) ?? 0)) continue;
        const minRuns = now - since >= IDLE_MS ? MIN_RUNS_WHEN_IDLE : MIN_RUNS;
        chosen = chooseParts(parts, minRuns, this.#dependencies.maxPartBytes);
      }
    this.#unchanged = unchanged;
    return chosen;
  }

  /** The parts of each window, newest first. */
  #groupByWindow(kind: LogKind): ReadonlyMap<bigint, readonly Part[]> {
    const now = this.#dependencies.clock();
    const groups = new Map<bigint, Part[]>();
    for (const part of this.#dependencies.parts.list(kind)) {
      const { start } = windowOf(part.entry.until, now);
      groups.set(start, [...(groups.get(start) ?? []), part]);
    }
    return groups;
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
