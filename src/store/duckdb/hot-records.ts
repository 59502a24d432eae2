// Records that came through the spool and are not in the file yet. They lie in tables in memory, where they can be seen at
// once, a unit at a time; a unit that is full is sealed, which frees its memory. What queries name, such as edge_logs, is
// a view of the sealed tables and the units.
//
// A seal copies a unit, sorted, into the file and notes how far the spool is sealed, in one transaction. Its commit and the
// change of that view are one step to readers, who look at both before it or after it (swap-gate.ts), so no record is missed
// and none is seen twice.
import { endOfLines } from '../../log-line.ts';
import { LOG_KINDS, type LogKind } from '../../log-record.ts';
import { insertOrNarrow } from '../insert-or-narrow.ts';
import type { SpooledLines, StoreWatch } from '../store.ts';
import { Turns } from '../turns.ts';
import { MAX_UNIT_BYTES } from './append.ts';
import type { Checkpoints } from './checkpoint.ts';
import { copySorted } from './copy-sorted.ts';
import type { DuckDBConnection } from './driver.ts';
import { nameOf, ROW_GROUP_ROWS, type SealedTables } from './sealed-tables.ts';
import type { Staging } from './staging.ts';
import type { SwapGate } from './swap-gate.ts';

/** Past this the largest unit is sealed before it is full: nine kinds, each nearly full, would not fit in memory. */
const MAX_OPEN_BYTES = 160 * 1024 * 1024;
/** As many full units may wait for their seal; then records wait in the spool. */
const MAX_WAITING_UNITS = 1;
/** After a seal that failed, such as on a full disk. */
const RETRY_MS = 5_000;

/** What DuckDB says of data that it cannot take. Every other error (disk, memory) may be gone the next time. */
const DATA_ERROR = /^(Conversion|Invalid Input|Constraint|Out of Range|Invalid type|Cast) Error/i;

interface Unit {
  readonly kind: LogKind;
  readonly table: string;
  rows: number;
  bytes: number;
  /** Queries see it: not before it holds something, since an empty one would make each of them a little dearer. */
  isShown: boolean;
  /** Spooled records are numbered by kind; this is the first after those that were folded. */
  next: number;
}

export interface HotParts {
  readonly hotWriter: DuckDBConnection;
  readonly fileWriter: DuckDBConnection;
  readonly sealedTables: SealedTables;
  readonly checkpoints: Checkpoints;
  /** Seals, appends, merges and retention write the file one after another. */
  readonly fileTurns: Turns;
  readonly staging: Staging;
  readonly gate: SwapGate;
  readonly watch: StoreWatch;
  /** Called when there are new records in a table and they can be seen. */
  readonly onFolded: (kind: LogKind, table: string) => Promise<void>;
  /** Throws where the disk has no room for so many bytes. */
  readonly needRoom: (bytes: number) => Promise<void>;
}

export class HotRecords {
  readonly #parts: HotParts;
  readonly #sealed: Map<LogKind, number>;
  readonly #open = new Map<LogKind, Unit>();
  /** Full, the oldest first; still seen by queries until their seal. */
  readonly #waiting: Unit[] = [];
  readonly #hotTurns = new Turns();
  #unitsMade = 0;
  #sealing: Promise<void> | undefined;
  #sealAgainAt = 0;

  private constructor(parts: HotParts, sealed: Map<LogKind, number>) {
    this.#parts = parts;
    this.#sealed = sealed;
  }

  static async open(parts: HotParts): Promise<HotRecords> {
    const reader = await parts.fileWriter.runAndReadAll('select kind, records from logs.sealed_records');
    const hot = new HotRecords(
      parts,
      new Map(reader.getRows().map(([kind, records]) => [kind as LogKind, Number(records)])),
    );
    for (const kind of LOG_KINDS) {
      hot.#open.set(kind, await hot.#makeUnit(kind, hot.sealed(kind)));
      await hot.#showUnits(kind);
    }
    return hot;
  }

  /** How many of the kind's spooled records are in the file. */
  sealed(kind: LogKind): number {
    return this.#sealed.get(kind) ?? 0;
  }

  /** Records that were folded before are passed over. Answers when what is new can be seen. */
  async fold({ kind, first, count, lines }: SpooledLines): Promise<void> {
    if (this.#waiting.length > MAX_WAITING_UNITS) await this.#sealWaiting();
    await this.#hotTurns.take(async () => {
      const before = Math.max(0, this.#unitOf(kind).next - first);
      if (before >= count) return;
      let [rest, left] = [lines.subarray(endOfLines(lines, before)), count - before];
      this.#unitOf(kind).next = first + before; // numbers of what could not be spooled are missing
      while (left > 0) {
        const unit = this.#unitOf(kind);
        const taken = Math.min(left, ROW_GROUP_ROWS - unit.rows);
        const end = endOfLines(rest, taken);
        await this.#insert(unit, rest.subarray(0, end), taken);
        [rest, left] = [rest.subarray(end), left - taken];
        if (unit.rows === ROW_GROUP_ROWS || unit.bytes >= MAX_UNIT_BYTES) await this.#closeUnit(unit);
      }
      await this.#closeLargest();
    });
    if (this.#waiting.length > 0) void this.#sealWaiting().catch(() => {}); // it reports by itself, and is tried again
  }

  /** Seals all that was folded of these kinds. */
  async settle(kinds: readonly LogKind[]): Promise<void> {
    await this.#hotTurns.take(async () => {
      for (const kind of kinds)
        if (this.#unitOf(kind).next > this.sealed(kind)) await this.#closeUnit(this.#unitOf(kind));
    });
    await this.#sealWaiting();
  }

  /** Lets a seal that runs come to its end; what is not sealed is still in the spool. */
  async close(): Promise<void> {
    await this.#hotTurns.done();
    await this.#sealing?.catch(() => {});
  }

  /** The unit knows after every step how far it has come, so that after an error it goes on from there. */
  async #insert(unit: Unit, lines: Uint8Array, count: number): Promise<void> {
    const { hotWriter, staging, watch, onFolded } = this.#parts;
    const taken = insertOrNarrow(lines, count, {
      isDataError: error => DATA_ERROR.test((error as Error).message),
      async insert(part, records) {
        await staging.insert(hotWriter, unit.kind, unit.table, [part]);
        unit.rows += records;
        unit.bytes += part.length;
        unit.next += records;
      },
      refuse(line, reason) {
        watch.refused?.({ kind: unit.kind, line, reason });
        unit.next++;
      },
    });
    await taken.finally(async () => {
      if (unit.rows > 0 && !unit.isShown) await this.#showUnits(unit.kind);
    });
    await onFolded(unit.kind, unit.table);
  }

  #unitOf(kind: LogKind): Unit {
    const unit = this.#open.get(kind);
    if (unit === undefined) throw new Error(`there is no unit for ${kind}`);
    return unit;
  }

  /** Its place is taken by an empty one; it is seen until its seal. */
  async #closeUnit(unit: Unit): Promise<void> {
    const next = await this.#makeUnit(unit.kind, unit.next);
    this.#waiting.push(unit);
    this.#open.set(unit.kind, next);
  }

  async #closeLargest(): Promise<void> {
    const units = [...this.#open.values()].sort((a, b) => b.bytes - a.bytes);
    const bytes = units.reduce((sum, unit) => sum + unit.bytes, 0);
    if (bytes > MAX_OPEN_BYTES && units[0] !== undefined) await this.#closeUnit(units[0]);
  }

  async #makeUnit(kind: LogKind, next: number): Promise<Unit> {
    const unit = { kind, table: `hot.${kind}_${++this.#unitsMade}`, rows: 0, bytes: 0, isShown: false, next };
    const columns = this.#parts.sealedTables.columnsOf(kind).replaceAll(' using compression zstd', '');
    await this.#parts.hotWriter.run(`create table ${unit.table} ${columns}`);
    return unit;
  }

  /** The newest first. */
  async #showUnits(kind: LogKind): Promise<void> {
    const units = [this.#unitOf(kind), ...this.#waiting.filter(unit => unit.kind === kind).reverse()];
    const shown = units.filter(unit => unit.rows > 0);
    const parts = [...shown.map(unit => unit.table), `logs.${kind}_logs`].map(table => `from ${table}`);
    await this.#parts.hotWriter.run(
      `create or replace view hot.${kind}_logs as ${parts.join(' union all ')}`,
    );
    for (const unit of shown) unit.isShown = true;
  }

  /** One run at a time; whoever asks meanwhile waits for that. */
  #sealWaiting(): Promise<void> {
    this.#sealing ??= this.#sealEach().finally(() => {
      this.#sealing = undefined;
    });
    return this.#sealing;
  }

  async #sealEach(): Promise<void> {
    if (performance.now() < this.#sealAgainAt) throw new Error('the last seal failed a moment ago');
    for (let unit = this.#waiting[0]; unit !== undefined; unit = this.#waiting[0]) {
      try {
        await this.#seal(unit);
      } catch (error) {
        this.#sealAgainAt = performance.now() + RETRY_MS;
        this.#parts.watch.sealFailed?.(unit.kind, error);
        throw error;
      }
    }
  }

  #seal(unit: Unit): Promise<void> {
    const { fileTurns, fileWriter, sealedTables, checkpoints, hotWriter, gate, needRoom } = this.#parts;
    const { kind, table, next, bytes, rows } = unit;
    const copy = async () => {
      const sealed = await sealedTables.openFor(kind);
      const copied = await copySorted(fileWriter, table, nameOf(sealed), bytes / Math.max(1, rows));
      if (copied !== rows) throw new Error(`${copied} of ${rows} records were copied`);
      await sealedTables.grew(sealed, rows);
      await fileWriter.run('insert or replace into logs.sealed_records values ($kind, $next)', {
        kind,
        next,
      });
    };
    const swap = (commit: () => Promise<void>) =>
      this.#hotTurns.take(() =>
        gate.swap(async () => {
          await commit();
          this.#waiting.splice(this.#waiting.indexOf(unit), 1);
          this.#sealed.set(kind, next);
          await this.#showUnits(kind);
        }),
      );
    return fileTurns.take(async () => {
      await needRoom(bytes);
      await sealedTables.change(copy, swap);
      await this.#hotTurns.take(() => hotWriter.run(`drop table ${table}`));
      await checkpoints.take();
    });
  }
}
