// The jobs that replace parts: merging, expiry, eviction and erasure. Whole parts are deleted; other parts are replaced by one sorted
// copy of the records that stay. Jobs pause while the store is busy. One job runs at a time.
import { setTimeout as sleep } from 'node:timers/promises';
import { type ErasedRecords, toErasedRecords } from '../../domain/erased.ts';
import { OperatorError } from '../../domain/errors.ts';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { Observe } from '../../observe/event.ts';
import type { Clock } from '../../system/clock.ts';
import { Mutex } from '../../system/mutex.ts';
import type { EraseScope, Expiry, MaintenanceTask } from '../store.ts';
import { addContents, EMPTY, ROW_GROUP_ROWS, readContent } from './checksum.ts';
import type { AfterBatch, Condition } from './copy-records.ts';
import { quote } from './database.ts';
import { DuckDBTimestampValue } from './driver.ts';
import { isDamageError, isFatalError } from './errors.ts';
import type { Manifest, PartEntry } from './manifest.ts';
import type { Part, Parts } from './parts.ts';
import type { StoreConnection } from './run-long.ts';
import { windowOf } from './time-windows.ts';

/** Minimum number of sorted runs for a merge, while records arrive in the window and when none have for IDLE_MS. */
const MIN_RUNS = 16;
const MIN_RUNS_WHEN_IDLE = 2;
const IDLE_MS = 30_000;
/** No merge creates a larger part: it would take too long, and a merge that a stop interrupts starts again from the beginning. */
const MAX_ROWS = 128 * ROW_GROUP_ROWS;
/** With a larger share of `maxParts`, each merge that is possible is due, so that flushes do not run out of file descriptors. */
const CROWDED_SHARE = 0.75;
/** A part has at most this many times as many rows as the smaller ones it is merged with: few rows are rewritten to add a few. */
const MAX_SIZE_RATIO = 4;
/**
 * DuckDB holds 2,048 consecutive records in memory when it reads or writes a part. A merge puts records of a project next to each
 * other, and each can have 1 MiB. So the large records of one part (LARGE_RECORD_BYTES) have at most this many bytes in total.
 */
export const MAX_LARGE_BYTES = 64 * 1024 * 1024;
/** A kind whose merge failed, such as on a full disk, is skipped for this time, so that other kinds are merged. */
const RETRY_MS = 600_000;

export class Rewriter {
  readonly #parts: Parts;
  readonly #clock: Clock;
  /** Only used by jobs. */
  readonly #connection: StoreConnection;
  /** How many queries and batches of records the store has received so far. */
  readonly #countOperations: () => number;
  readonly #observe: Observe;
  readonly #jobs = new Mutex();
  readonly #mergeAgainAt = new Map<LogKind, number>();
  #isClosing = false;

  constructor(
    parts: Parts,
    connection: StoreConnection,
    clock: Clock,
    countOperations: () => number,
    observe: Observe,
  ) {
    this.#parts = parts;
    this.#clock = clock;
    this.#connection = connection;
    this.#countOperations = countOperations;
    this.#observe = observe;
  }

  /** Implements Store.maintain. */
  maintain(task: MaintenanceTask): Promise<number> {
    return this.#jobs.run(() => {
      if (task === 'compact') return this.#merge();
      return 'expire' in task ? this.#deleteExpired(task.expire) : this.#evictOldest(task.evictTo);
    });
  }

  /**
   * Implements Store.eraseProject. When it resolves, no file of a part has text of the project, except for those that were set aside.
   * If the process is killed, each part has all of these records or none.
   */
  erase(scope: EraseScope): Promise<number> {
    const parts = this.#parts;
    const { project, beforeMicros } = scope;
    const condition: Condition =
      beforeMicros === undefined
        ? { sql: 'project = $project', values: { project } }
        : {
            sql: 'project = $project and timestamp < $before',
            values: { project, before: new DuckDBTimestampValue(beforeMicros) },
          };
    return this.#jobs.run(async () => {
      let erased = 0;
      for (const part of parts.list()) erased += await this.#eraseFrom(part, condition);
      await parts.deletionsDone();
      // The same content can be loaded again, and a part that was set aside can be restored. Otherwise there is nothing to remember.
      if (parts.manifest.loads.length + parts.manifest.setAside.length > 0)
        await parts.commit({ change: manifest => ({ erased: addErased(manifest, toErasedRecords(scope)) }) });
      return erased;
    });
  }

  /** Erases from restored parts what was erased while they were set aside. Must be called before the first query. */
  async eraseFromRestored(): Promise<void> {
    const parts = this.#parts;
    for (const part of parts.list()) {
      const { erasedBefore } = part.entry;
      if (erasedBefore === undefined) continue;
      const conditions = parts.manifest.erased.slice(erasedBefore).map(toSql);
      const condition = { sql: ['false', ...conditions].join(' or '), values: {} };
      await this.#eraseFrom(part, condition).catch((cause: Error) => {
        const problem = `what was erased while ${part.entry.file} was set aside cannot be erased from it`;
        throw new OperatorError(`${problem}: ${cause.message}`, { cause });
      });
    }
    await parts.deletionsDone();
  }

  /** Cancels the running job. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#connection.interrupt();
    await this.#jobs.idle();
  }

  /**
   * Merges parts, so that the records of a project are in one place. A flush sorts only the records that arrived together, so a
   * project that writes little has a few records in each of many parts, and a query for it reads a block of all of them. Only parts
   * of the same time window are merged (time-windows.ts). Returns how many records the merged parts have.
   */
  async #merge(): Promise<number> {
    const [first, ...others] = this.#chooseMerge();
    if (first === undefined) return 0;
    try {
      await this.#rewrite([first, ...others]);
      return countRecords([first, ...others]);
    } catch (error) {
      this.#mergeAgainAt.set(first.entry.kind, performance.now() + RETRY_MS);
      throw error;
    }
  }

  #chooseMerge(): readonly Part[] {
    const { maxPartBytes, maxParts } = this.#parts;
    const now = performance.now();
    const windows = LOG_KINDS.filter(kind => now >= (this.#mergeAgainAt.get(kind) ?? 0)).flatMap(kind =>
      this.#listWindows(kind),
    );
    for (const window of windows) {
      const isIdle = window.every(({ addedAt }) => now - addedAt >= IDLE_MS);
      const chosen = chooseParts(window, isIdle ? MIN_RUNS_WHEN_IDLE : MIN_RUNS, maxPartBytes);
      if (chosen.length > 0) return chosen;
    }
    if (this.#parts.list().length <= CROWDED_SHARE * maxParts) return [];
    for (const maxRatio of [MAX_SIZE_RATIO, Number.POSITIVE_INFINITY])
      for (const window of windows) {
        const chosen = chooseParts(window, MIN_RUNS_WHEN_IDLE, maxPartBytes, maxRatio);
        if (chosen.length > 1) return chosen;
      }
    return [];
  }

  /** The parts of a kind, by time window. */
  #listWindows(kind: LogKind): readonly (readonly Part[])[] {
    const windows = new Map<bigint, Part[]>();
    for (const part of this.#parts.list(kind)) {
      const { start } = windowOf(part.entry.until, this.#clock());
      windows.set(start, [...(windows.get(start) ?? []), part]);
    }
    return [...windows.values()];
  }

  /** Reports parts that cannot be rewritten, such as on a full disk. The next call tries them again. */
  async #deleteExpired({ expiredBefore, rewriteBefore }: Expiry): Promise<number> {
    const parts = this.#parts;
    const expired = parts.list().filter(({ entry }) => entry.until < expiredBefore);
    await parts.commit({
      remove: expired,
      change: ({ setAside }) => ({
        expiredBefore,
        setAside: setAside.filter(({ until }) => until >= expiredBefore),
      }),
    });
    let removed = countRecords(expired);
    const before = new DuckDBTimestampValue(expiredBefore);
    for (const kind of LOG_KINDS) {
      // The oldest one first. If it cannot be rewritten, such as on a nearly full disk, the next one may be smaller.
      const due = parts.list(kind).filter(({ entry }) => entry.since < rewriteBefore);
      for (const part of due.reverse())
        try {
          removed += await this.#rewrite([part], { sql: 'timestamp < $before', values: { before } });
          break;
        } catch (error) {
          if (this.#isClosing || isFatalError(error)) throw error;
          this.#observe({ type: 'retention_failed', error });
        }
    }
    return removed;
  }

  async #evictOldest(maxBytes: number): Promise<number> {
    const parts = this.#parts;
    let { bytes } = parts;
    const evicted: Part[] = [];
    for (const part of [...parts.list()].reverse()) {
      if (bytes > maxBytes) evicted.push(part);
      bytes -= part.entry.bytes;
    }
    await parts.commit({ remove: evicted });
    return countRecords(evicted);
  }

  /** Returns how many records match and were erased. */
  async #eraseFrom(part: Part, condition: Condition): Promise<number> {
    try {
      return (await this.#hasMatch(part, condition)) ? await this.#rewrite([part], condition) : 0;
    } catch (error) {
      if (this.#parts.list().includes(part)) throw error; // otherwise it is damaged and was set aside
      return 0;
    }
  }

  #hasMatch(part: Part, { sql, values }: Condition): Promise<boolean> {
    return this.#setAsideDamaged([part], async () => {
      const query = `select exists (from ${part.name} where ${sql})`;
      return (await this.#connection.runAndReadAll(query, { ...values })).value(0, 0) === true;
    });
  }

  /**
   * Replaces the sources, which are of one kind, by one part without the records that match `except`. Returns how many records it
   * removed.
   */
  #rewrite(sources: readonly [Part, ...Part[]], except?: Condition): Promise<number> {
    const [parts, connection, { kind }] = [this.#parts, this.#connection, sources[0].entry];
    return this.#setAsideDamaged(sources, async () => {
      await parts.requireDiskSpace(sources.reduce((sum, part) => sum + part.entry.bytes, 0));
      const afterBatch = this.#createThrottle();
      let content = EMPTY;
      for (const { name } of sources)
        content = addContents(content, await readContent(connection, kind, name, afterBatch, except));
      const from = `(${sources.map(({ name }) => `from ${name}`).join(' union all ')})`;
      const write = async (written: PartEntry[]) => {
        if (content.rows === 0) return;
        written.push(await parts.writer.write(connection, kind, { from, except, content }, afterBatch, true));
        this.#throwIfClosing();
      };
      await parts.commit({ write, remove: sources });
      return countRecords(sources) - content.rows;
    });
  }

  /** If `work` fails because a source is damaged, sets the source aside. */
  async #setAsideDamaged<T>(sources: readonly Part[], work: () => Promise<T>): Promise<T> {
    this.#throwIfClosing();
    try {
      return await work();
    } catch (error) {
      if (isDamageError(error)) await this.#parts.setAsideDamaged(sources);
      throw error;
    }
  }

  /** If the store was used during a batch, pauses for as long as the batch took. */
  #createThrottle(): AfterBatch {
    let operations = this.#countOperations();
    return async ms => {
      if (this.#countOperations() !== operations && !this.#isClosing)
        await sleep(ms, undefined, { ref: false });
      operations = this.#countOperations();
      this.#throwIfClosing();
    };
  }

  #throwIfClosing(): void {
    if (this.#isClosing) throw new Error('the store is closed');
  }
}

function countRecords(parts: readonly Part[]): number {
  return parts.reduce((sum, { entry }) => sum + entry.records, 0);
}

/** Returns parts of similar size that have at least `minRuns` sorted runs and may be merged, or none. `parts` are of one window. */
export function chooseParts(
  parts: readonly Part[],
  minRuns: number,
  maxBytes: number,
  maxRatio = MAX_SIZE_RATIO,
): readonly Part[] {
  const smallestFirst = [...parts].sort((a, b) => a.entry.records - b.entry.records);
  for (let start = 0; start < parts.length; start++) {
    const chosen: Part[] = [];
    let [rows, bytes, largeBytes, runs] = [0, 0, 0, 0];
    for (const part of smallestFirst.slice(start)) {
      const { entry } = part;
      if (rows > 0 && (entry.records > rows * maxRatio || rows + entry.records > MAX_ROWS)) break;
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

function toSql({ projectHash, beforeMicros }: ErasedRecords): string {
  const time = beforeMicros === undefined ? '' : ` and timestamp < make_timestamp(${beforeMicros}::bigint)`;
  return `(sha256(project) = ${quote(projectHash)}${time})`;
}

/** Keeps one entry of each project that no load or part counts yet: otherwise, regular erasures would let the list grow. */
function addErased({ erased, loads, setAside }: Manifest, added: ErasedRecords): ErasedRecords[] {
  const counted = Math.max(...[...loads, ...setAside].map(({ erasedBefore = 0 }) => erasedBefore));
  const isSameProject = ({ projectHash }: ErasedRecords) => projectHash === added.projectHash;
  const same = erased.slice(counted).find(isSameProject);
  if (same?.beforeMicros === undefined && same !== undefined) return erased; // it includes everything
  const beforeMicros =
    added.beforeMicros === undefined
      ? undefined
      : Math.max(added.beforeMicros, same?.beforeMicros ?? -Infinity);
  const others = erased.slice(counted).filter(entry => !isSameProject(entry));
  return [...erased.slice(0, counted), ...others, { ...added, beforeMicros }];
}
