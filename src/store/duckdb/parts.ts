// The tables of the file. A kind has several: a seal adds a row group to the newest, in the order of arrival, and merging
// makes one table, sorted as a whole, out of many. The file's view edge_logs, and so on, holds those of a kind together;
// it changes in the transaction that brings a table or takes it away.
import { columnsOf, LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { DuckDBConnection } from './driver.ts';

/** As many rows as a row group of DuckDB holds: what is added in whole row groups is never written anew for the next. */
export const ROW_GROUP_ROWS = 122_880;
/** The newest first, since logs.all asks for these: it can pass over a row group as soon as it has a hundred newer records. */
export const PART_ORDER = 'order by project, timestamp desc';
/** Seals add no more than this to a table, so that what lies apart in time can be merged apart. */
const MAX_FLUSHED_ROWS = 4 * ROW_GROUP_ROWS;

const TABLE_NAME = /^(\w+)_(sealed|merged|merging)_(\d+)$/;

export interface Part {
  readonly kind: LogKind;
  readonly number: number;
  /** Sorted as a whole; otherwise unit by unit. */
  readonly isCompacted: boolean;
  readonly rows: number;
}

export function nameOf({ kind, isCompacted, number }: Part): string {
  return `logs.${kind}_${isCompacted ? 'merged' : 'sealed'}_${number}`;
}

export class Parts {
  readonly #connection: DuckDBConnection;
  readonly #parts = new Map<LogKind, readonly Part[]>();
  /** Being merged: nothing is added to them, and none is removed. */
  #reserved: readonly Part[] = [];
  #lastNumber = 0;

  private constructor(connection: DuckDBConnection) {
    this.#connection = connection;
  }

  static async open(connection: DuckDBConnection): Promise<Parts> {
    const sealed = new Parts(connection);
    const found = await connection.runAndReadAll(
      "select table_name from duckdb_tables() where database_name = 'logs'",
    );
    for (const [name] of found.getRows()) await sealed.#load(String(name));
    await sealed.transaction(async () => {
      for (const kind of LOG_KINDS) if (sealed.list(kind).length === 0) await sealed.writablePart(kind);
    });
    return sealed;
  }

  /** The oldest first. There is always one. */
  list(kind: LogKind): readonly Part[] {
    return this.#parts.get(kind) ?? [];
  }

  /**
   * One transaction on the file: what `work` does to tables and rows, and the views that tell of it. Where the commit has
   * to be one step with something else, `around` takes it there. Changes must follow one another.
   */
  async transaction<T>(
    work: () => Promise<T>,
    around: (commit: () => Promise<void>) => Promise<void> = commit => commit(),
  ): Promise<T> {
    const before = new Map(this.#parts);
    let isCommitted = false;
    await this.#connection.run('begin transaction');
    try {
      const result = await work();
      for (const kind of LOG_KINDS)
        if (namesOf(this.list(kind)) !== namesOf(before.get(kind))) await this.#updateView(kind);
      await around(async () => {
        await this.#connection.run('commit');
        isCommitted = true;
      });
      return result;
    } catch (error) {
      if (isCommitted) throw error;
      for (const kind of LOG_KINDS) this.#parts.set(kind, before.get(kind) ?? []);
      await this.#connection.run('rollback').catch(() => {}); // a failed commit has rolled back already; the first error counts
      throw error;
    }
  }

  /**
   * The table that the next records of a kind go to; it is made where there is none that can take more. One that ends in a
   * part of a row group is gone on with only while it has fewer rows than `raggedRows`: that part is written anew.
   */
  async writablePart(kind: LogKind, raggedRows = 0): Promise<Part> {
    const last = this.list(kind).at(-1);
    if (last !== undefined && this.#takesMore(last, raggedRows)) return last;
    const next = { kind, number: ++this.#lastNumber, isCompacted: false, rows: 0 };
    await this.create(kind, nameOf(next));
    this.#put(next);
    return next;
  }

  async create(kind: LogKind, name: string): Promise<void> {
    await this.#connection.run(`create table ${name} (${tableColumns(kind)})`);
  }

  /** So many rows came into a table, or left it. One that is empty goes, if there is another. */
  async changeRows(table: Part, rows: number): Promise<void> {
    const grown = { ...table, rows: table.rows + rows };
    if (grown.rows === 0 && this.list(table.kind).length > 1) await this.drop([table]);
    else this.#put(grown);
  }

  /** Takes the place of tables that are dropped: has the number of the newest of them. */
  async replace(old: readonly Part[], table: Part): Promise<void> {
    await this.drop(old);
    this.#put(table);
  }

  async drop(tables: readonly Part[]): Promise<void> {
    for (const table of tables) {
      await this.#connection.run(`drop table ${nameOf(table)}`);
      this.#parts.set(
        table.kind,
        this.list(table.kind).filter(({ number }) => number !== table.number),
      );
    }
  }

  #put(table: Part): void {
    const others = this.list(table.kind).filter(({ number }) => number !== table.number);
    this.#parts.set(
      table.kind,
      [...others, table].sort((a, b) => a.number - b.number),
    );
  }

  /** Nothing is added to these tables and none of them is removed, until others are held. */
  reserve(tables: readonly Part[]): void {
    this.#reserved = tables;
  }

  isReserved({ number }: Part): boolean {
    return this.#reserved.some(held => held.number === number);
  }

  #takesMore(table: Part, raggedRows: number): boolean {
    const { isCompacted, rows } = table;
    if (isCompacted || this.isReserved(table) || rows >= MAX_FLUSHED_ROWS) return false;
    return rows % ROW_GROUP_ROWS === 0 || rows < raggedRows;
  }

  async #updateView(kind: LogKind): Promise<void> {
    const tables = namesOf(this.list(kind)).split(' ').reverse();
    const parts = tables.map(name => `from ${name.replace('logs.', '')}`);
    await this.#connection.run(`create or replace view logs.${kind}_logs as ${parts.join(' union all ')}`);
  }

  async #load(name: string): Promise<void> {
    const [, kind, state, digits] = TABLE_NAME.exec(name) ?? [];
    if (!LOG_KINDS.some(each => each === kind)) return;
    const number = Number(digits);
    this.#lastNumber = Math.max(this.#lastNumber, number);
    if (state === 'merging') {
      await this.#connection.run(`drop table logs.${name}`); // its merge was cut short; what it was made of is there
      return;
    }
    const count = await this.#connection.runAndReadAll(`select count(*) from logs.${name}`);
    this.#put({
      kind: kind as LogKind,
      number,
      isCompacted: state === 'merged',
      rows: Number(count.value(0, 0)),
    });
  }
}

function namesOf(tables: readonly Part[] | undefined): string {
  return (tables ?? []).map(nameOf).join(' ');
}

/** The column definitions of a kind's tables. */
export function tableColumns(kind: LogKind): string {
  return columnsOf(kind)
    .map(({ name, duckdb }) => `${name} ${duckdb}`)
    .join(', ');
}
