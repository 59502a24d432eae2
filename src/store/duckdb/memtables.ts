// Memtables: in-memory tables with the records from the spool that are not in the file yet. Each kind has one active memtable,
// whose records are visible at once. Rotation replaces the active memtable by an empty one: the old one is immutable from then
// on, and it is flushed to the file. Queries read views such as edge_logs: the union of a kind's memtables and parts. The full
// name is mem.edge_logs; queries can omit `mem.`, because every connection runs `use mem`.
//
// In one transaction, a flush copies an immutable memtable, sorted, to a part and stores the sequence number up to which the kind
// is flushed. The commit and the change of the view happen while the view lock is held for writing. A query takes its snapshot
// while the lock is held for reading. So a query sees both changes or neither: no record is missed or counted twice.
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { offsetAfterLines } from '../../domain/log-line.ts';
import { Mutex } from '../../system/mutex.ts';
import type { ReadWriteLock } from '../../system/read-write-lock.ts';
import { insertWithBisect } from '../insert-with-bisect.ts';
import type { SpooledLines, StoreCallbacks } from '../store.ts';
import type { Checkpointer } from './checkpoint.ts';
import { readChecksum } from './checksum.ts';
import { copySorted } from './copy-records.ts';
import type { FlushVerification } from './flush-verification.ts';
import { MAX_SORT_BYTES, memoryTableColumns, nameOf, type Parts, ROW_GROUP_ROWS } from './parts.ts';
import type { RunStatement, StoreConnection } from './run-long.ts';
import { isDataError, type Staging } from './staging.ts';

/**
 * If all active memtables together are larger than this, the largest is flushed. There is one for each of the nine kinds, and
 * nine nearly full ones would not fit in memory.
 */
const MAX_ACTIVE_BYTES = 160 * 1024 * 1024;
/** `apply` waits while more than this many memtables wait for a flush. Records stay in the spool meanwhile. */
const MAX_IMMUTABLE_MEMTABLES = 1;
/** An insert of this size or more takes at least 10 ms, so it uses `runLong` (run-long.ts). */
const LONG_INSERT_BYTES = 1024 * 1024;
/** The pause after a failed flush, such as on a full disk. */
const RETRY_MS = 5_000;

interface Memtable {
  readonly kind: LogKind;
  readonly table: string;
  rows: number;
  /** The size of its lines, as they were in the spool. */
  bytes: number;
  /** Included in the view. An empty memtable is not, because it would slow down every query a little. */
  isVisible: boolean;
  /** All of its records have this sequence number or a higher one. */
  readonly firstSequence: number;
  /** The sequence number after the last applied record. */
  nextSequence: number;
}

export interface MemtablesDependencies {
  readonly memoryWriter: StoreConnection;
  readonly fileWriter: StoreConnection;
  readonly parts: Parts;
  readonly checkpointer: Checkpointer;
  /**
   * Held by everything that writes to the file: flush, append, retention, and the short steps of compaction, vacuum and removals.
   * Only their long copies into temporary tables run without it.
   */
  readonly fileMutex: Mutex;
  readonly verification: FlushVerification;
  readonly staging: Staging;
  readonly viewLock: ReadWriteLock;
  readonly callbacks: StoreCallbacks;
  /** Called when new records of a memtable are visible. */
  readonly onApplied: (kind: LogKind, table: string) => Promise<void>;
  /** Throws if the disk has no space for this many bytes. */
  readonly requireDiskSpace: (bytes: number) => Promise<void>;
}

export class Memtables {
  readonly #dependencies: MemtablesDependencies;
  readonly #flushedUpTo: Map<LogKind, number>;
  readonly #active = new Map<LogKind, Memtable>();
  /** Memtables that wait for a flush, oldest first. Queries see them until they are flushed. */
  readonly #immutable: Memtable[] = [];
  /** Held by everything that changes memtables or their views. */
  readonly #memoryMutex = new Mutex();
  #created = 0;
  #flushing: Promise<void> | undefined;
  #retryFlushAt = 0;

  private constructor(dependencies: MemtablesDependencies, flushedUpTo: Map<LogKind, number>) {
    this.#dependencies = dependencies;
    this.#flushedUpTo = flushedUpTo;
  }

  static async open(dependencies: MemtablesDependencies): Promise<Memtables> {
    // The column `records` has the next sequence number. Its name is part of the file format.
    const result = await dependencies.fileWriter.runAndReadAll(
      'select kind, records from logs.flushed_records',
    );
    const flushedUpTo = new Map(
      result.getRows().map(([kind, sequence]) => [kind as LogKind, Number(sequence)]),
    );
    const memtables = new Memtables(dependencies, flushedUpTo);
    for (const kind of LOG_KINDS) {
      const memtable = await memtables.#createMemtable(kind, memtables.flushedUpTo(kind));
      memtables.#active.set(kind, memtable);
      await memtables.#updateView(kind);
    }
    return memtables;
  }

  /** Implements Store.flushedUpTo: these records are in the file. */
  flushedUpTo(kind: LogKind): number {
    return this.#flushedUpTo.get(kind) ?? 0;
  }

  /** Active memtables with records, and all immutable ones. */
  get counts(): { readonly active: number; readonly immutable: number } {
    const active = [...this.#active.values()].filter(({ rows }) => rows > 0).length;
    return { active, immutable: this.#immutable.length };
  }

  /** Skips records that were applied before. Resolves when the others are visible. */
  async apply(records: SpooledLines): Promise<void> {
    if (this.#immutable.length > MAX_IMMUTABLE_MEMTABLES) await this.#flushImmutable();
    await this.#memoryMutex.run(async () => {
      await this.#insertNew(records);
      await this.#rotateLargest();
    });
    if (this.#immutable.length > 0) void this.#flushImmutable().catch(() => {}); // reported as an event and retried
  }

  /** Flushes all applied records of these kinds. Throws if that fails; the next flush retries. */
  async flush(kinds: readonly LogKind[]): Promise<void> {
    await this.#memoryMutex.run(async () => {
      for (const kind of kinds) {
        const memtable = this.#activeOf(kind);
        if (memtable.nextSequence > this.flushedUpTo(kind)) await this.#rotate(memtable);
      }
    });
    await this.#flushImmutable();
  }

  /** Waits for the running flush. Records that are not flushed are still in the spool. */
  async close(): Promise<void> {
    await this.#memoryMutex.idle();
    await this.#flushing?.catch(() => {});
  }

  /** Inserts the records that were not applied before and rotates memtables that become full. */
  async #insertNew({ kind, firstSequence, count, lines }: SpooledLines): Promise<void> {
    const alreadyApplied = Math.max(0, this.#activeOf(kind).nextSequence - firstSequence);
    if (alreadyApplied >= count) return;
    let [rest, left] = [lines.subarray(offsetAfterLines(lines, alreadyApplied)), count - alreadyApplied];
    // Skips a gap: a failed spool write leaves unused sequence numbers.
    this.#activeOf(kind).nextSequence = firstSequence + alreadyApplied;
    while (left > 0) {
      const memtable = this.#activeOf(kind);
      const taken = Math.min(left, ROW_GROUP_ROWS - memtable.rows);
      const end = offsetAfterLines(rest, taken);
      await this.#insert(memtable, rest.subarray(0, end), taken);
      [rest, left] = [rest.subarray(end), left - taken];
      const isFull = memtable.rows === ROW_GROUP_ROWS || memtable.bytes >= MAX_SORT_BYTES;
      if (isFull) await this.#rotate(memtable);
    }
  }

  /** Updates nextSequence after each insert and each rejected line, so that `apply` can resume after an error. */
  async #insert(memtable: Memtable, lines: Uint8Array, count: number): Promise<void> {
    const { memoryWriter, staging, callbacks, onApplied } = this.#dependencies;
    const inserted = insertWithBisect(lines, count, {
      isRowError: isDataError,
      async insert(chunk, records) {
        const run: RunStatement = (sql, values) =>
          chunk.length < LONG_INSERT_BYTES
            ? memoryWriter.run(sql, values)
            : memoryWriter.runLong(sql, values);
        await staging.insert(run, memtable.kind, memtable.table, [chunk]);
        memtable.rows += records;
        memtable.bytes += chunk.length;
        memtable.nextSequence += records;
      },
      reject(line, reason) {
        callbacks.recordRejected?.({ kind: memtable.kind, line, reason });
        memtable.nextSequence++;
      },
    });
    await inserted.finally(async () => {
      if (memtable.rows > 0 && !memtable.isVisible) await this.#updateView(memtable.kind);
    });
    await onApplied(memtable.kind, memtable.table);
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
    if (bytes > MAX_ACTIVE_BYTES && largestFirst[0] !== undefined) await this.#rotate(largestFirst[0]);
  }

  async #createMemtable(kind: LogKind, nextSequence: number): Promise<Memtable> {
    const table = `mem.${kind}_${++this.#created}`;
    await this.#dependencies.memoryWriter.run(`create table ${table} (${memoryTableColumns(kind)})`);
    return { kind, table, rows: 0, bytes: 0, isVisible: false, firstSequence: nextSequence, nextSequence };
  }

  /** Replaces the view mem.<kind>_logs: the union of the kind's memtables and parts, newest first. */
  async #updateView(kind: LogKind): Promise<void> {
    const immutable = this.#immutable.filter(memtable => memtable.kind === kind).reverse();
    const visible = [this.#activeOf(kind), ...immutable].filter(({ rows }) => rows > 0);
    const selects = [...visible.map(({ table }) => table), `logs.${kind}_logs`].map(name => `from ${name}`);
    await this.#dependencies.memoryWriter.run(
      `create or replace view mem.${kind}_logs as ${selects.join(' union all ')}`,
    );
    for (const memtable of visible) memtable.isVisible = true;
  }

  /** Flushes all immutable memtables. Concurrent calls share one run. */
  #flushImmutable(): Promise<void> {
    this.#flushing ??= this.#flushEach().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #flushEach(): Promise<void> {
    if (performance.now() < this.#retryFlushAt)
      throw new Error(`the last flush failed less than ${RETRY_MS / 1000} s ago`);
    const { observe } = this.#dependencies.callbacks;
    for (let memtable = this.#immutable[0]; memtable !== undefined; memtable = this.#immutable[0]) {
      const startedAt = performance.now();
      try {
        await this.#flushOne(memtable);
        observe?.({ type: 'flushed', kind: memtable.kind, durationMs: performance.now() - startedAt });
      } catch (error) {
        this.#retryFlushAt = performance.now() + RETRY_MS;
        observe?.({ type: 'flush_failed', kind: memtable.kind, error });
        throw error;
      }
    }
  }

  #flushOne(memtable: Memtable): Promise<void> {
    const { fileMutex, parts, checkpointer, memoryWriter, requireDiskSpace, verification } =
      this.#dependencies;
    const flush = async () => {
      await requireDiskSpace(memtable.bytes);
      await parts.transaction(
        () => this.#copyToPart(memtable),
        commit => this.#commitFlush(memtable, commit),
      );
      await this.#memoryMutex.run(() => memoryWriter.run(`drop table ${memtable.table}`));
      return checkpointer.run();
    };
    return verification.runFlush(memtable, () => fileMutex.run(flush));
  }

  /** Each flush writes a part of its own, so that it can be verified and rewritten alone. */
  async #copyToPart({ kind, table, rows, bytes, firstSequence, nextSequence }: Memtable): Promise<void> {
    const { fileWriter, parts } = this.#dependencies;
    if (rows > 0) {
      const part = await parts.emptyPart(kind);
      const checksum = await readChecksum(fileWriter, kind, table);
      const copied = await copySorted(fileWriter, table, nameOf(part), bytes / rows);
      if (copied !== rows) throw new Error(`only ${copied} of ${rows} records were copied`);
      parts.setContent(part, { checksum, unverified: { firstSequence, nextSequence } });
    }
    await fileWriter.run('insert or replace into logs.flushed_records values ($kind, $nextSequence)', {
      kind,
      nextSequence,
    });
  }

  /** Commits and removes the memtable from the view. For queries this is one atomic step. */
  #commitFlush(memtable: Memtable, commit: () => Promise<void>): Promise<void> {
    return this.#memoryMutex.run(() =>
      this.#dependencies.viewLock.write(async () => {
        await commit();
        this.#immutable.splice(this.#immutable.indexOf(memtable), 1);
        this.#flushedUpTo.set(memtable.kind, memtable.nextSequence);
        await this.#updateView(memtable.kind);
      }),
    );
  }
}
