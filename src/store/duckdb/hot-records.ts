// Records that came through the spool and are not in the file yet. They lie in tables in memory, where they can be seen at
// once, a unit at a time; a unit that is full is sealed, which frees its memory. What queries name, such as edge_logs, is
// a view of the sealed table and the units.
//
// A seal copies a unit, sorted, into the file and notes how far the spool is sealed, in one transaction. Its commit and the
// change of the view are one step to readers, who bind their statements before or after it (swap-gate.ts), so no record is
// missed and none is seen twice.
import type { DuckDBConnection } from '@duckdb/node-api';
import { endOfLines } from '../../log-line.ts';
import { LOG_KINDS, type LogKind } from '../../log-record.ts';
import { insertOrNarrow } from '../insert-or-narrow.ts';
import type { SpooledLines, StoreWatch } from '../store.ts';
import { Turns } from '../turns.ts';
import { MAX_UNIT_BYTES, ROW_GROUP_ROWS } from './append.ts';
import { checkpoint } from './checkpoint.ts';
import { copySorted } from './copy-sorted.ts';
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
  /** Spooled records are numbered by kind; this is the first after those that were folded. */
  next: number;
}

export interface HotParts {
  readonly hotWriter: DuckDBConnection;
  readonly fileWriter: DuckDBConnection;
  /** Seals, appends and retention write the file one after another. */
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
  readonly #columns: ReadonlyMap<LogKind, string>;
  readonly #sealed: Map<LogKind, number>;
  readonly #open = new Map<LogKind, Unit>();
  /** Full, the oldest first; still seen by queries until their seal. */
  readonly #waiting: Unit[] = [];
  readonly #hotTurns = new Turns();
  #unitsMade = 0;
  #sealing: Promise<void> | undefined;
  #sealAgainAt = 0;

  private constructor(parts: HotParts, columns: ReadonlyMap<LogKind, string>, sealed: Map<LogKind, number>) {
    this.#parts = parts;
    this.#columns = columns;
    this.#sealed = sealed;
  }

  static async open(parts: HotParts): Promise<HotRecords> {
    const read = async (sql: string) => (await parts.fileWriter.runAndReadAll(sql)).getRows();
    const columns = new Map<LogKind, string>();
    for (const [table, sql] of await read(
      `select table_name, sql from duckdb_tables() where database_name = 'logs' and table_name like '%\\_logs' escape '\\'`,
    ))
      columns.set(String(table).replace(/_logs$/, '') as LogKind, String(sql).replace(/^[^(]*/, ''));
    const sealed = new Map<LogKind, number>();
    for (const [kind, records] of await read('select kind, records from logs.sealed_records'))
      sealed.set(kind as LogKind, Number(records));
    const hot = new HotRecords(parts, columns, sealed);
    for (const kind of LOG_KINDS) await hot.#openUnit(kind, hot.sealed(kind));
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
    await insertOrNarrow(lines, count, {
      isDataError: error => DATA_ERROR.test((error as Error).message),
      async insert(part, records) {
        await staging.insert(hotWriter, unit.kind, unit.table, part);
        unit.rows += records;
        unit.bytes += part.length;
        unit.next += records;
      },
      refuse(line, reason) {
        watch.refused?.({ kind: unit.kind, line, reason });
        unit.next++;
      },
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
    this.#waiting.push(unit);
    await this.#openUnit(unit.kind, unit.next);
  }

  async #closeLargest(): Promise<void> {
    const units = [...this.#open.values()].sort((a, b) => b.bytes - a.bytes);
    const bytes = units.reduce((sum, unit) => sum + unit.bytes, 0);
    if (bytes > MAX_OPEN_BYTES && units[0] !== undefined) await this.#closeUnit(units[0]);
  }

  async #openUnit(kind: LogKind, next: number): Promise<void> {
    const unit = { kind, table: `hot.${kind}_${++this.#unitsMade}`, rows: 0, bytes: 0, next };
    await this.#parts.hotWriter.run(`create table ${unit.table} ${this.#columns.get(kind)}`);
    this.#open.set(kind, unit);
    await this.#showUnits(kind);
  }

  async #showUnits(kind: LogKind): Promise<void> {
    const units = [...this.#waiting.filter(unit => unit.kind === kind), this.#unitOf(kind)];
    const parts = [`logs.${kind}_logs`, ...units.map(unit => unit.table)].map(table => `from ${table}`);
    await this.#parts.hotWriter.run(
      `create or replace view hot.${kind}_logs as ${parts.join(' union all ')}`,
    );
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
    const { fileTurns, fileWriter, hotWriter, gate, needRoom } = this.#parts;
    const { kind, table, next, bytes } = unit;
    return fileTurns.take(async () => {
      await needRoom(bytes);
      await fileWriter.run('begin transaction');
      try {
        await copySorted(fileWriter, table, `logs.${kind}_logs`, bytes);
        await fileWriter.run('insert or replace into logs.sealed_records values ($kind, $next)', {
          kind,
          next,
        });
        await this.#hotTurns.take(() =>
          gate.swap(async () => {
            await fileWriter.run('commit');
            this.#waiting.splice(this.#waiting.indexOf(unit), 1);
            this.#sealed.set(kind, next);
            await this.#showUnits(kind);
          }),
        );
      } catch (error) {
        await fileWriter.run('rollback').catch(() => {}); // after a failed commit there is nothing to roll back
        throw error;
      }
      await this.#hotTurns.take(() => hotWriter.run(`drop table ${table}`));
      await checkpoint(fileWriter);
    });
  }
}
