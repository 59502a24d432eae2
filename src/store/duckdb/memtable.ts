// Records that came through the spool and are not in the file yet. They lie in tables in memory, where they can be seen at
// once, a unit at a time; a unit that is full is sealed, which frees its memory. What queries name, such as edge_logs, is
// a view of the sealed tables and the units.
//
// A seal copies a unit, sorted, into the file and notes how far the spool is sealed, in one transaction. Its commit and the
// change of that view are one step to readers, who look at both before it or after it (swap-gate.ts), so no record is missed
// and none is seen twice.

import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { offsetAfterLines } from '../../domain/log-line.ts';
import { Mutex } from '../../system/mutex.ts';
import type { ReadWriteLock } from '../../system/read-write-lock.ts';
import { insertWithBisect } from '../insert-with-bisect.ts';
import type { SpooledLines, StoreEvents } from '../store.ts';
import { MAX_MEMTABLE_BYTES } from './append.ts';
import type { Checkpointer } from './checkpoint.ts';
import { copySorted } from './copy-sorted.ts';
import type { DuckDBConnection } from './driver.ts';
import { nameOf, type Parts, ROW_GROUP_ROWS, tableColumns } from './parts.ts';
import type { Staging } from './staging.ts';

/** Past this the largest unit is sealed before it is full: nine kinds, each nearly full, would not fit in memory. */
const MAX_OPEN_BYTES = 160 * 1024 * 1024;
/** As many full units may wait for their seal; then records wait in the spool. */
const MAX_WAITING_UNITS = 1;
/** After a seal that failed, such as on a full disk. */
const RETRY_MS = 5_000;

/** What DuckDB says of data that it cannot take. Every other error (disk, memory) may be gone the next time. */
const DATA_ERROR = /^(Conversion|Invalid Input|Constraint|Out of Range|Invalid type|Cast) Error/i;

interface Memtable {
  readonly kind: LogKind;
  readonly table: string;
  rows: number;
  bytes: number;
  /** Queries see it: not before it holds something, since an empty one would make each of them a little dearer. */
  isVisible: boolean;
  /** Spooled records are numbered by kind; this is the first after those that were folded. */
  nextSequence: number;
}

export interface MemtablesDependencies {
  readonly memoryWriter: DuckDBConnection;
  readonly fileWriter: DuckDBConnection;
  readonly parts: Parts;
  readonly checkpoints: Checkpointer;
  /** Seals, appends, merges and retention write the file one after another. */
  readonly fileMutex: Mutex;
  readonly staging: Staging;
  readonly viewLock: ReadWriteLock;
  readonly events: StoreEvents;
  /** Called when there are new records in a table and they can be seen. */
  readonly onApplied: (kind: LogKind, table: string) => Promise<void>;
  /** Throws where the disk has no room for so many bytes. */
  readonly requireDiskSpace: (bytes: number) => Promise<void>;
}

export class Memtables {
  readonly #dependencies: MemtablesDependencies;
  readonly #flushed: Map<LogKind, number>;
  readonly #active = new Map<LogKind, Memtable>();
  /** Full, the oldest first; still seen by queries until their seal. */
  readonly #full: Memtable[] = [];
  readonly #memoryMutex = new Mutex();
  #created = 0;
  #flushing: Promise<void> | undefined;
  #retryFlushAt = 0;

  private constructor(parts: MemtablesDependencies, flushedUpTo: Map<LogKind, number>) {
    this.#dependencies = parts;
    this.#flushed = flushedUpTo;
  }

  static async open(parts: MemtablesDependencies): Promise<Memtables> {
    const reader = await parts.fileWriter.runAndReadAll('select kind, records from logs.sealed_records');
    const hot = new Memtables(
      parts,
      new Map(reader.getRows().map(([kind, records]) => [kind as LogKind, Number(records)])),
    );
    for (const kind of LOG_KINDS) {
      hot.#active.set(kind, await hot.#createMemtable(kind, hot.sealed(kind)));
      await hot.#updateView(kind);
    }
    return hot;
  }

  /** How many of the kind's spooled records are in the file. */
  sealed(kind: LogKind): number {
    return this.#flushed.get(kind) ?? 0;
  }

  /** Records that were folded before are passed over. Answers when what is new can be seen. */
  async apply({ kind, firstSequence, count, lines }: SpooledLines): Promise<void> {
    if (this.#full.length > MAX_WAITING_UNITS) await this.#flushFull();
    await this.#memoryMutex.run(async () => {
      const before = Math.max(0, this.#activeOf(kind).nextSequence - firstSequence);
      if (before >= count) return;
      let [rest, left] = [lines.subarray(offsetAfterLines(lines, before)), count - before];
      this.#activeOf(kind).nextSequence = firstSequence + before; // numbers of what could not be spooled are missing
      while (left > 0) {
        const unit = this.#activeOf(kind);
        const taken = Math.min(left, ROW_GROUP_ROWS - unit.rows);
        const end = offsetAfterLines(rest, taken);
        await this.#insert(unit, rest.subarray(0, end), taken);
        [rest, left] = [rest.subarray(end), left - taken];
        if (unit.rows === ROW_GROUP_ROWS || unit.bytes >= MAX_MEMTABLE_BYTES) await this.#rotate(unit);
      }
      await this.#rotateLargest();
    });
    if (this.#full.length > 0) void this.#flushFull().catch(() => {}); // it reports by itself, and is tried again
  }

  /** Seals all that was folded of these kinds. */
  async flush(kinds: readonly LogKind[]): Promise<void> {
    await this.#memoryMutex.run(async () => {
      for (const kind of kinds)
        if (this.#activeOf(kind).nextSequence > this.sealed(kind)) await this.#rotate(this.#activeOf(kind));
    });
    await this.#flushFull();
  }

  /** Lets a seal that runs come to its end; what is not sealed is still in the spool. */
  async close(): Promise<void> {
    await this.#memoryMutex.idle();
    await this.#flushing?.catch(() => {});
  }

  /** The unit knows after every step how far it has come, so that after an error it goes on from there. */
  async #insert(unit: Memtable, lines: Uint8Array, count: number): Promise<void> {
    const { memoryWriter, staging, events, onApplied } = this.#dependencies;
    const taken = insertWithBisect(lines, count, {
      isDataError: error => DATA_ERROR.test((error as Error).message),
      async insert(part, records) {
        await staging.insert(memoryWriter, unit.kind, unit.table, [part]);
        unit.rows += records;
        unit.bytes += part.length;
        unit.nextSequence += records;
      },
      reject(line, reason) {
        events.recordRejected?.({ kind: unit.kind, line, reason });
        unit.nextSequence++;
      },
    });
    await taken.finally(async () => {
      if (unit.rows > 0 && !unit.isVisible) await this.#updateView(unit.kind);
    });
    await onApplied(unit.kind, unit.table);
  }

  #activeOf(kind: LogKind): Memtable {
    const unit = this.#active.get(kind);
    if (unit === undefined) throw new Error(`there is no unit for ${kind}`);
    return unit;
  }

  /** Its place is taken by an empty one; it is seen until its seal. */
  async #rotate(unit: Memtable): Promise<void> {
    const next = await this.#createMemtable(unit.kind, unit.nextSequence);
    this.#full.push(unit);
    this.#active.set(unit.kind, next);
  }

  async #rotateLargest(): Promise<void> {
    const units = [...this.#active.values()].sort((a, b) => b.bytes - a.bytes);
    const bytes = units.reduce((sum, unit) => sum + unit.bytes, 0);
    if (bytes > MAX_OPEN_BYTES && units[0] !== undefined) await this.#rotate(units[0]);
  }

  async #createMemtable(kind: LogKind, next: number): Promise<Memtable> {
    const unit = {
      kind,
      table: `hot.${kind}_${++this.#created}`,
      rows: 0,
      bytes: 0,
      isVisible: false,
      nextSequence: next,
    };
    const columns = tableColumns(kind).replaceAll(' using compression zstd', '');
    await this.#dependencies.memoryWriter.run(`create table ${unit.table} (${columns})`);
    return unit;
  }

  /** The newest first. */
  async #updateView(kind: LogKind): Promise<void> {
    const units = [this.#activeOf(kind), ...this.#full.filter(unit => unit.kind === kind).reverse()];
    const shown = units.filter(unit => unit.rows > 0);
    const parts = [...shown.map(unit => unit.table), `logs.${kind}_logs`].map(table => `from ${table}`);
    await this.#dependencies.memoryWriter.run(
      `create or replace view hot.${kind}_logs as ${parts.join(' union all ')}`,
    );
    for (const unit of shown) unit.isVisible = true;
  }

  /** One run at a time; whoever asks meanwhile waits for that. */
  #flushFull(): Promise<void> {
    this.#flushing ??= this.#flushEach().finally(() => {
      this.#flushing = undefined;
    });
    return this.#flushing;
  }

  async #flushEach(): Promise<void> {
    if (performance.now() < this.#retryFlushAt) throw new Error('the last seal failed a moment ago');
    for (let unit = this.#full[0]; unit !== undefined; unit = this.#full[0]) {
      try {
        await this.#flushOne(unit);
      } catch (error) {
        this.#retryFlushAt = performance.now() + RETRY_MS;
        this.#dependencies.events.flushFailed?.(unit.kind, error);
        throw error;
      }
    }
  }

  #flushOne(unit: Memtable): Promise<void> {
    const { fileMutex, fileWriter, parts, checkpoints, memoryWriter, viewLock, requireDiskSpace } =
      this.#dependencies;
    const { kind, table, nextSequence, bytes, rows } = unit;
    const copy = async () => {
      const sealed = await parts.writablePart(kind);
      const copied = await copySorted(fileWriter, table, nameOf(sealed), bytes / Math.max(1, rows));
      if (copied !== rows) throw new Error(`${copied} of ${rows} records were copied`);
      await parts.changeRows(sealed, rows);
      await fileWriter.run('insert or replace into logs.sealed_records values ($kind, $next)', {
        kind,
        next: nextSequence,
      });
    };
    const swap = (commit: () => Promise<void>) =>
      this.#memoryMutex.run(() =>
        viewLock.write(async () => {
          await commit();
          this.#full.splice(this.#full.indexOf(unit), 1);
          this.#flushed.set(kind, nextSequence);
          await this.#updateView(kind);
        }),
      );
    return fileMutex.run(async () => {
      await requireDiskSpace(bytes);
      await parts.transaction(copy, swap);
      await this.#memoryMutex.run(() => memoryWriter.run(`drop table ${table}`));
      await checkpoints.run();
    });
  }
}
