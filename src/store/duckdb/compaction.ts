// Merges parts, so that the records of a project are in one place. A flush sorts only the records that arrived together, so a
// project that writes little has a few records in each of many row groups, and a query for it reads all of them.
//
// Queries over all projects cover the last hour or the last seven days. So parts of the last seven days stay in the order of time:
// they are merged only up to a span of half a week. Older parts are merged with each other.
import { LOG_KINDS } from '../../domain/log-columns.ts';
import { MICROS_PER_DAY } from '../../system/clock.ts';
import { copySorted } from './copy-records.ts';
import { type DuckDBConnection, DuckDBTimestampValue } from './driver.ts';
import type { IdleKinds } from './idle-kinds.ts';
import type { PartRewriter, Rewrite } from './part-rewriter.ts';
import { nameOf, type Part, type Parts, ROW_GROUP_ROWS } from './parts.ts';

/** Minimum number of sorted runs (see countRuns) for a merge, when the kind is idle and when it is not. */
const MIN_RUNS_WHEN_IDLE = 2;
const MIN_RUNS = 16;
/** Parts that are younger than this are merged only if the result covers at most MAX_RECENT_SPAN. */
const RECENT_MICROS = 7n * MICROS_PER_DAY;
const MAX_RECENT_SPAN = RECENT_MICROS / 2n;
/** Upper bound, so that a merge always finishes. */
const MAX_COMPACTED_ROWS = 128 * ROW_GROUP_ROWS;
/** A part is merged with newer ones if it has at most this many times their rows, so that few rows do not rewrite many. */
const MAX_SIZE_RATIO = 4;
/** The size of a record is estimated from this many records in the middle of each part. */
const SAMPLE_ROWS = 1000;
/** Estimated size of the columns other than the message and the metadata. */
const OTHER_COLUMNS_BYTES = 200;

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
}

export class Compactor {
  readonly #dependencies: CompactorDependencies;

  constructor(dependencies: CompactorDependencies) {
    this.#dependencies = dependencies;
  }

  /** Merges parts of one kind, if there are enough of them. Returns whether there was work. */
  run(nowMicros: bigint): Promise<boolean> {
    return this.#dependencies.rewriter.run(() => this.#choose(nowMicros));
  }

  async #choose(nowMicros: bigint): Promise<Rewrite | undefined> {
    const { parts, idleKinds, rewriter } = this.#dependencies;
    const idle = idleKinds.find();
    for (const kind of LOG_KINDS) {
      const minRuns = idle.has(kind) ? MIN_RUNS_WHEN_IDLE : MIN_RUNS;
      if (rewriter.isClosing || countRuns(parts.list(kind)) < minRuns) continue;
      const timed = await this.#findTimes(parts.list(kind));
      const [first, ...rest] = chooseParts(timed, nowMicros - RECENT_MICROS, minRuns);
      if (first !== undefined) return mergeOf([first, ...rest]);
    }
    return undefined;
  }

  /** A part starts where the previous one ends. Its oldest record is no use: a few records can arrive weeks late. */
  async #findTimes(parts: readonly Part[]): Promise<TimedPart[]> {
    const timed: TimedPart[] = [];
    for (const part of parts) {
      const result = await this.#dependencies.fileWriter.runAndReadAll(
        `select max(timestamp) from ${nameOf(part)}`,
      );
      const newest = result.value(0, 0);
      const until = newest instanceof DuckDBTimestampValue ? newest.micros : 0n;
      timed.push({ part, since: timed.at(-1)?.until ?? 0n, until });
    }
    return timed;
  }
}

function mergeOf(sources: Rewrite['sources']): Rewrite {
  const union = sources.map(part => `from ${nameOf(part)}`).join(' union all ');
  return {
    sources,
    isCompacted: true,
    copy: async (connection, to, afterSlice) =>
      copySorted(connection, `(${union})`, to, await estimateRecordBytes(connection, sources), afterSlice),
  };
}

async function estimateRecordBytes(connection: DuckDBConnection, parts: readonly Part[]): Promise<number> {
  const samples = parts.map(part => {
    const middle = Math.floor(part.rows / 2);
    return `select event_message, metadata from ${nameOf(part)} where rowid between ${middle} and ${middle + SAMPLE_ROWS}`;
  });
  const result = await connection.runAndReadAll(
    `select avg(strlen(event_message) + strlen(metadata)) from (${samples.join(' union all ')})`,
  );
  return OTHER_COLUMNS_BYTES + Number(result.value(0, 0) ?? 0);
}

/**
 * Returns the newest consecutive parts that have at least `minRuns` sorted runs and may be merged, oldest first, or none.
 * Parts from before and after `recent` are never merged with each other. `parts` are oldest first.
 */
export function chooseParts(parts: readonly TimedPart[], recent: bigint, minRuns: number): readonly Part[] {
  for (let end = parts.length; end > 0; end--) {
    const until = parts[end - 1]?.until ?? 0n;
    const chosen: Part[] = [];
    let rows = 0;
    for (const { part, since, until: ownUntil } of parts.slice(0, end).reverse()) {
      if (ownUntil >= recent !== until >= recent) break;
      if (until >= recent && until - since > MAX_RECENT_SPAN) break;
      if (rows > 0 && (part.rows > rows * MAX_SIZE_RATIO || rows + part.rows > MAX_COMPACTED_ROWS)) break;
      chosen.unshift(part);
      rows += part.rows;
    }
    if (countRuns(chosen) >= minRuns) return chosen;
  }
  return [];
}

/** A sorted run is one place with records of a project. A compacted part is one run; other parts have one run per row group. */
function countRuns(parts: readonly Part[]): number {
  return parts.reduce(
    (sum, { isCompacted, rows }) => sum + (isCompacted ? 1 : Math.ceil(rows / ROW_GROUP_ROWS)),
    0,
  );
}
