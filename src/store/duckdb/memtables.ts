// Memtables: in-memory tables with the records from the spool that are not in a part yet. Each kind has one active memtable,
// whose records are visible at once. Rotation replaces the active memtable by an empty one: the old one is immutable from then
// on, and it is flushed: its records become parts, one for each time window that they belong to.
import { MAX_MEMTABLE_BYTES, MAX_SORT_BYTES } from '../../domain/limits.ts';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { offsetAfterLines } from '../../domain/log-line.ts';
import type { Clock } from '../../system/clock.ts';
import { Mutex } from '../../system/mutex.ts';
import { insertWithBisect } from '../insert-with-bisect.ts';
import { storeClosed } from '../query-queue.ts';
import type { SpooledLines, StoreCallbacks } from '../store.ts';
import { ROW_GROUP_ROWS } from './checksum.ts';
import { isDataError, isFatalError, messageOf } from './errors.ts';
import { type Parts, QueryTable } from './parts.ts';
import type { StoreConnection } from './run-long.ts';
import { cutLargeLines, insertLines, memoryTableColumns } from './staging.ts';
import { splitByWindow } from './time-windows.ts';

/** `apply` waits while more than this many memtables wait for a flush. Records stay in the spool meanwhile. */
const MAX_IMMUTABLE_MEMTABLES = 1;
/** The pause after a failed flush, such as on a full disk. */
const RETRY_MS = 5_000;

interface Memtable {
  readonly kind: LogKind;
  readonly table: QueryTable;
  rows: number;
  /** The size of its lines, as they were in the spool. */
  bytes: number;
  /** The newest timestamp, in Unix microseconds. Undefined if it has no records. */
  until: bigint | undefined;
  readonly firstSequence: number;
  /** The sequence number after the last applied record. */
  nextSequence: number;
}

export interface MemtablesOptions {
  /** Inserts into memtables. */
  readonly memoryWriter: StoreConnection;
  /** Writes parts. */
  readonly flushWriter: StoreConnection;
  readonly stagingFile: string;
  readonly clock: Clock;
  readonly callbacks: StoreCallbacks;
}

export class Memtables {
  readonly #parts: Parts;
  readonly #options: MemtablesOptions;
  readonly #active = new Map<LogKind, Memtable>();
  /** Memtables that wait for a flush, oldest first. Queries see them until they are flushed. */
  readonly #immutable: Memtable[] = [];
  /** Held by everything that writes to memtables. */
  readonly #memoryMutex = new Mutex();
  #created = 0;
  #flushing: Promise<void> | undefined;
  #isClosed = false;
  /** The last failed flush, in milliseconds of `performance.now`. */
  #failure: { readonly at: number; readonly error: unknown } | undefined;

  private constructor(parts: Parts, options: MemtablesOptions) {
    this.#parts = parts;
    this.#options = options;
  }

  static async open(parts: Parts, options: MemtablesOptions): Promise<Memtables> {
    const memtables = new Memtables(parts, options);
    for (const kind of LOG_KINDS)
      memtables.#active.set(kind, await memtables.#createMemtable(kind, parts.storedUpTo(kind)));
    return memtables;
  }

  /** The tables of a kind that have records, newest first. */
  list(kind: LogKind): readonly QueryTable[] {
    return this.#listMemtables(kind)
      .filter(({ rows }) => rows > 0)
      .map(({ table }) => table);
  }

  /** A table of the kind that may be empty. */
  activeTable(kind: LogKind): QueryTable {
    return this.#activeOf(kind).table;
  }

  /** The newest timestamp of a kind's records in memtables. */
  newestTimestamp(kind: LogKind): bigint | undefined {
    let newest: bigint | undefined;
    for (const { until } of this.#listMemtables(kind))
      if (until !== undefined && (newest === undefined || until > newest)) newest = until;
    return newest;
  }

  /** Active memtables with records, and all immutable ones. */
  get counts(): { readonly active: number; readonly immutable: number } {
    const active = [...this.#active.values()].filter(({ rows }) => rows > 0).length;
    return { active, immutable: this.#immutable.length };
  }

  /** Skips records that were applied before. Resolves when the others are visible. */
  async apply(records: SpooledLines): Promise<void> {
    while (this.#immutable.length > MAX_IMMUTABLE_MEMTABLES) await this.#flushOldest();
    await this.#memoryMutex.run(async () => {
      await this.#insertNew(records);
      await this.#rotateLargest();
    });
    if (this.#immutable.length > 0) void this.#flushImmutable().catch(() => {}); // reported as an event and retried
  }

  /** Flushes all applied records of these kinds. Throws if that fails; the next flush retries. */
  async flush(kinds: readonly LogKind[]): Promise<void> {
    await this.#flushImmutable();
    // One kind after the other: `apply` waits if several memtables wait for a flush.
    for (const kind of kinds) {
      await this.#memoryMutex.run(async () => {
        const memtable = this.#activeOf(kind);
        if (memtable.nextSequence > memtable.firstSequence) await this.#rotate(memtable);
      });
      await this.#flushImmutable();
    }
  }

  /** Waits for the running flush. Records that are not flushed are still in the spool. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#flushing?.catch(() => {});
    await this.#memoryMutex.idle();
  }

  /** Inserts the records that were not applied before and rotates memtables that become full. */
  async #insertNew({ kind, firstSequence, count, lines }: SpooledLines): Promise<void> {
    const alreadyApplied = Math.max(0, this.#activeOf(kind).nextSequence - firstSequence);
    if (alreadyApplied >= count) return;
    let [rest, left] = [lines.subarray(offsetAfterLines(lines, alreadyApplied)), count - alreadyApplied];
    // Skips a gap: records that are lost, or numbers that a failed spool write of an earlier release left unused.
    this.#activeOf(kind).nextSequence = firstSequence + alreadyApplied;
    const maxBytes = Math.min(MAX_SORT_BYTES, this.#parts.maxPartBytes);
    while (left > 0) {
      const memtable = this.#activeOf(kind);
      const [piece] = cutLargeLines([rest]);
      const taken = Math.min(piece?.count ?? left, ROW_GROUP_ROWS - memtable.rows);
      const end = offsetAfterLines(rest, taken);
      await this.#insert(memtable, rest.subarray(0, end), taken);
      [rest, left] = [rest.subarray(end), left - taken];
      const isFull = memtable.rows >= ROW_GROUP_ROWS || memtable.bytes >= maxBytes;
      if (isFull) await this.#rotate(memtable);
    }
  }

  /** Updates nextSequence after each insert and each rejected line, so that `apply` can resume after an error. */
  async #insert(memtable: Memtable, lines: Uint8Array, count: number): Promise<void> {
    const { memoryWriter, stagingFile, callbacks } = this.#options;
    const inserted = insertWithBisect(lines, count, {
      isRowError: isDataError,
      async insert(chunk, records) {
        await insertLines(memoryWriter, stagingFile, memtable.kind, memtable.table.name, [chunk]);
        memtable.rows += records;
        memtable.bytes += chunk.length;
        memtable.nextSequence += records;
      },
      reject(line, reason) {
        callbacks.recordRejected?.({ kind: memtable.kind, line, reason });
        memtable.nextSequence++;
      },
    });
    await inserted.finally(() => this.#updateNewest(memtable));
  }

  async #updateNewest(memtable: Memtable): Promise<void> {
    const result = await this.#options.memoryWriter.runAndReadAll(
      `select epoch_us(max(timestamp)) from ${memtable.table.name}`,
    );
    const newest = result.value(0, 0);
    memtable.until = newest === null ? undefined : BigInt(String(newest));
  }

  /** Newest first. */
  #listMemtables(kind: LogKind): readonly Memtable[] {
    const immutable = this.#immutable.filter(memtable => memtable.kind === kind);
    return [this.#activeOf(kind), ...immutable.reverse()];
  }

  #activeOf(kind: LogKind): Memtable {
    const memtable = this.#active.get(kind);
    if (memtable === undefined) throw new Error(`there is no memtable for ${kind}`);
    return memtable;
  }

  /** Replaces the active memtable by an empty one. The old one waits for its flush and stays visible until then. */
  async #rotate(memtable: Memtable): Promise<void> {
    const next = await this.#createMemtable(memtable.kind, memtable.nextSequence);
    this.#immutable.push(memtable);
    this.#active.set(memtable.kind, next);
  }

  /** Rotates the largest memtable if all active ones together are too large. */
  async #rotateLargest(): Promise<void> {
    const largestFirst = [...this.#active.values()].sort((a, b) => b.bytes - a.bytes);
    const bytes = largestFirst.reduce((sum, memtable) => sum + memtable.bytes, 0);
    if (bytes > MAX_MEMTABLE_BYTES && largestFirst[0] !== undefined) await this.#rotate(largestFirst[0]);
  }

  async #createMemtable(kind: LogKind, nextSequence: number): Promise<Memtable> {
    const table = new QueryTable(`mem.${kind}_${++this.#created}`);
    await this.#options.memoryWriter.run(`create table ${table.name} (${memoryTableColumns(kind)})`);
    return { kind, table, rows: 0, bytes: 0, until: undefined, firstSequence: nextSequence, nextSequence };
  }

  /** Flushes the memtables that are immutable now. Without that limit, it could go on for as long as records arrive. */
  async #flushImmutable(): Promise<void> {
    const newest = this.#immutable.at(-1);
    while (newest !== undefined && this.#immutable.includes(newest)) await this.#flushOldest();
  }

  /** Flushes the oldest immutable memtable. Concurrent calls share one run. */
  async #flushOldest(): Promise<void> {
    if (this.#isClosed) throw storeClosed();
    this.#flushing ??= this.#flushFirst().finally(() => {
      this.#flushing = undefined;
    });
    await this.#flushing;
  }

  async #flushFirst(): Promise<void> {
    if (this.#failure !== undefined && performance.now() < this.#failure.at + RETRY_MS)
      throw new Error(
        `the last flush failed less than ${RETRY_MS / 1000} s ago: ${messageOf(this.#failure.error)}`,
      );
    const { observe, storeFailed } = this.#options.callbacks;
    const [memtable] = this.#immutable;
    if (memtable === undefined) return;
    const startedAt = performance.now();
    try {
      await this.#flushOne(memtable);
      observe?.({ type: 'flushed', kind: memtable.kind, durationMs: performance.now() - startedAt });
    } catch (error) {
      this.#failure = { at: performance.now(), error };
      if (isFatalError(error)) storeFailed?.(error); // a flush in the background has no caller
      observe?.({ type: 'flush_failed', kind: memtable.kind, error });
      throw error;
    }
  }

  async #flushOne(memtable: Memtable): Promise<void> {
    const { kind, table, nextSequence } = memtable;
    const { flushWriter, clock } = this.#options;
    await this.#parts.requireDiskSpace(memtable.bytes);
    await this.#parts.commit({
      write: async written => {
        for (const run of await splitByWindow(flushWriter, kind, table.name, clock()))
          written.push(await this.#parts.writer.write(flushWriter, kind, run));
      },
      change: ({ storedUpTo }) => ({ storedUpTo: { ...storedUpTo, [kind]: nextSequence } }),
      onCommitted: () => {
        this.#immutable.splice(this.#immutable.indexOf(memtable), 1);
      },
    });
    void this.#drop(memtable);
  }

  async #drop({ table }: Memtable): Promise<void> {
    await table.unused();
    await this.#memoryMutex
      .run(() => this.#options.memoryWriter.run(`drop table ${table.name}`))
      .catch(() => {}); // the store is closed
  }
}
