// Merges parts, so that the records of a project are in one place. A flush sorts only the records that arrived together, so a
// project that writes little has a few records in each of many row groups, and a query for it reads all these row groups.
//
// The built-in query over all projects (usage.api-counts, whose parameter `project` is a pattern for URLs) covers the last hour
// or the last seven days. It reads most of every compacted part that overlaps this time, because such a part is sorted by
// project. So parts of the last seven days are merged only up to a span of half a week. Older parts are merged with each other.
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { MICROS_PER_DAY } from '../../system/clock.ts';
import { type AfterBatch, copySorted } from './copy-records.ts';
import { type DuckDBConnection, DuckDBTimestampValue } from './driver.ts';
import type { IdleKinds } from './idle-kinds.ts';
import type { PartRewriter, Rewrite } from './part-rewriter.ts';
import { nameOf, type Part, type Parts, ROW_GROUP_ROWS } from './parts.ts';

/** Minimum number of sorted runs (see countRuns) for a merge, when the kind is idle (idle-kinds.ts) and when it is not. */
const MIN_RUNS_WHEN_IDLE = 2;
const MIN_RUNS = 16;
/** Parts that are younger than this are merged only if the result covers at most MAX_RECENT_SPAN_MICROS. */
const RECENT_MICROS = 7n * MICROS_PER_DAY;
const MAX_RECENT_SPAN_MICROS = RECENT_MICROS / 2n;
/** No merge creates a larger part: it would take too long, and a merge that a stop interrupts starts again from the beginning. */
const MAX_COMPACTED_ROWS = 128 * ROW_GROUP_ROWS;
/**
 * A part is merged with newer ones only if it has at most this many times as many rows as they have together. So a merge does not
 * rewrite many old rows to add a few new ones.
 */
const MAX_SIZE_RATIO = 4;
/** Estimated size of a record's columns other than its message and metadata. */
const OTHER_COLUMNS_BYTES = 200;
/**
 * DuckDB holds 2,048 consecutive records in memory when it writes or reads a part. Compaction puts the records of a project
 * next to each other, so these could be 2,048 records of 1 MiB. Therefore the records of one compaction that are larger than
 * LARGE_RECORD_BYTES have at most MAX_LARGE_RECORDS_BYTES in total.
 */
const LARGE_RECORD_BYTES = 32 * 1024;
const MAX_LARGE_RECORDS_BYTES = 64 * 1024 * 1024;
/** A kind whose compaction failed, such as on a full disk, is skipped for this time, so that other kinds are compacted. */
const RETRY_MS = 600_000;

export interface CompactorDependencies {
  readonly rewriter: PartRewriter;
  readonly fileWriter: DuckDBConnection;
  readonly parts: Parts;
  readonly idleKinds: IdleKinds;
}

/** A part and the time range of most of its records, in Unix microseconds. */
export interface TimedPart {
  readonly part: Part;
  readonly since: bigint;
  readonly until: bigint;
  /** The size of its large records. 0 if it was not measured yet. */
  readonly largeRecordsBytes: number;
}

interface PartSize {
  readonly bytes: number;
  readonly largeRecordsBytes: number;
}

/** The chosen parts were not measured before, and their large records exceed the limit. The next choice knows their sizes. */
class TooLargeError extends Error {}

export class Compactor {
  readonly #dependencies: CompactorDependencies;
  /** A part is measured only when it is first chosen: measuring reads all of it. A part that changes becomes a new object. */
  readonly #sizes = new WeakMap<Part, PartSize>();
  readonly #retryAt = new Map<LogKind, number>();

  constructor(dependencies: CompactorDependencies) {
    this.#dependencies = dependencies;
  }

  /** Merges parts of one kind, if there are enough of them. Returns whether there was work. */
  async run(nowMicros: bigint): Promise<boolean> {
    let current: LogKind | undefined;
    const choose = () =>
      this.#choose(nowMicros, kind => {
        current = kind;
      });
    try {
      return await this.#dependencies.rewriter.run(choose);
    } catch (error) {
      if (error instanceof TooLargeError) return true;
      if (current !== undefined) this.#retryAt.set(current, performance.now() + RETRY_MS);
      throw error;
    }
  }

  /** Calls `onKind` before it reads the parts of a kind. */
  async #choose(nowMicros: bigint, onKind: (kind: LogKind) => void): Promise<Rewrite | undefined> {
    const { parts, idleKinds, rewriter } = this.#dependencies;
    const idle = idleKinds.find();
    for (const kind of LOG_KINDS) {
      if (performance.now() < (this.#retryAt.get(kind) ?? 0)) continue;
      const minRuns = idle.has(kind) ? MIN_RUNS_WHEN_IDLE : MIN_RUNS;
      const verified = parts.list(kind).filter(({ unverified }) => unverified === undefined);
      if (rewriter.isClosing || countRuns(verified) < minRuns) continue;
      onKind(kind);
      const timed = await this.#findTimes(verified);
      const [first, ...rest] = chooseParts(timed, nowMicros - RECENT_MICROS, minRuns);
      if (first !== undefined) return this.#mergeOf([first, ...rest]);
    }
    return undefined;
  }

  /**
   * The time range of a part starts where that of the previous part ends. It does not start at the oldest record of the part,
   * because a few records can arrive weeks late. The range of the first part starts at 0, so while this part is recent, its range
   * is longer than MAX_RECENT_SPAN_MICROS and the part is not merged.
   */
  async #findTimes(parts: readonly Part[]): Promise<TimedPart[]> {
    const timed: TimedPart[] = [];
    for (const part of parts) {
      const result = await this.#dependencies.fileWriter.runAndReadAll(
        `select max(timestamp) from ${nameOf(part)}`,
      );
      const newest = result.value(0, 0);
      const until = newest instanceof DuckDBTimestampValue ? newest.micros : 0n;
      const { largeRecordsBytes = 0 } = this.#sizes.get(part) ?? {};
      timed.push({ part, since: timed.at(-1)?.until ?? 0n, until, largeRecordsBytes });
    }
    return timed;
  }

  #mergeOf(sources: Rewrite['sources']): Rewrite {
    const union = sources.map(part => `from ${nameOf(part)}`).join(' union all ');
    const rows = sources.reduce((sum, part) => sum + part.rows, 0);
    return {
      sources,
      isCompacted: true,
      copy: async (connection, to, afterBatch) => {
        let [bytes, largeRecordsBytes] = [0, 0];
        for (const part of sources) {
          const size = await this.#measure(connection, part, afterBatch);
          bytes += size.bytes;
          largeRecordsBytes += size.largeRecordsBytes;
        }
        if (largeRecordsBytes > MAX_LARGE_RECORDS_BYTES) throw new TooLargeError();
        return copySorted(connection, `(${union})`, to, bytes / Math.max(1, rows), afterBatch);
      },
    };
  }

  async #measure(connection: DuckDBConnection, part: Part, afterBatch: AfterBatch): Promise<PartSize> {
    const known = this.#sizes.get(part);
    if (known !== undefined) return known;
    const startedAt = performance.now();
    const result = await connection.runAndReadAll(
      `select sum(bytes), sum(bytes) filter (bytes > ${LARGE_RECORD_BYTES})
      from (select strlen(event_message) + strlen(metadata) + ${OTHER_COLUMNS_BYTES} as bytes from ${nameOf(part)})`,
    );
    const [bytes, largeRecordsBytes] = [Number(result.value(0, 0)), Number(result.value(1, 0))];
    const size = { bytes, largeRecordsBytes };
    this.#sizes.set(part, size);
    await afterBatch(performance.now() - startedAt);
    return size;
  }
}

/**
 * Returns the newest consecutive parts that have at least `minRuns` sorted runs and may be merged, oldest first, or none.
 * Parts that end before `recentSince` are never merged with parts that end at or after it. `parts` are oldest first.
 */
export function chooseParts(
  parts: readonly TimedPart[],
  recentSince: bigint,
  minRuns: number,
): readonly Part[] {
  const isRecent = (micros: bigint) => micros >= recentSince;
  for (let end = parts.length; end > 0; end--) {
    const until = parts[end - 1]?.until ?? 0n;
    const chosen: Part[] = [];
    let [rows, largeBytes] = [0, 0];
    for (const { part, since, until: ownUntil, largeRecordsBytes } of parts.slice(0, end).reverse()) {
      if (isRecent(ownUntil) !== isRecent(until)) break;
      if (isRecent(until) && until - since > MAX_RECENT_SPAN_MICROS) break;
      if (largeBytes + largeRecordsBytes > MAX_LARGE_RECORDS_BYTES) break;
      if (rows > 0 && (part.rows > rows * MAX_SIZE_RATIO || rows + part.rows > MAX_COMPACTED_ROWS)) break;
      chosen.unshift(part);
      rows += part.rows;
      largeBytes += largeRecordsBytes;
    }
    if (countRuns(chosen) >= minRuns) return chosen;
  }
  return [];
}

/** Each sorted run has a project's records in one place. A compacted part is one run; other parts have one run per row group. */
function countRuns(parts: readonly Part[]): number {
  return parts.reduce(
    (sum, { isCompacted, rows }) => sum + (isCompacted ? 1 : Math.ceil(rows / ROW_GROUP_ROWS)),
    0,
  );
}
