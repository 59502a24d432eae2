// The parts of the file: tables with log records. Each kind has several. A flush adds a row group to the newest part, and
// compaction replaces many parts by one. The view <kind>_logs of the file is the union of a kind's parts.
//
// Table names in the file: <kind>_part_N is sorted within each row group, <kind>_compacted_N is sorted as a whole, and
// <kind>_compacting_N is the incomplete copy of a compaction or a vacuum.
import { columnsOf, LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { DuckDBConnection } from './driver.ts';

/** The size of a full row group in DuckDB. Appending to a partial row group rewrites it; whole ones are never rewritten. */
export const ROW_GROUP_ROWS = 122_880;
/** A memtable or a batch of large records ends here, before it fills a row group, because it is sorted in memory. */
export const MAX_BATCH_BYTES = 128 * 1024 * 1024;
/**
 * Newest first within a project, because logs.all returns the newest 100 records: as soon as it has 100, DuckDB skips every
 * row group whose records are older. In ascending order each record would replace one of the 100 found before.
 */
export const PART_ORDER = 'order by project, timestamp desc';
/** Upper bound for flushes, so that compaction can merge parts of different times separately. */
const MAX_FLUSHED_ROWS = 4 * ROW_GROUP_ROWS;

const TABLE_NAME = /^(\w+)_(part|compacted|compacting)_(\d+)$/;

export interface Part {
  readonly kind: LogKind;
  /** Higher numbers are newer. */
  readonly number: number;
  /** Sorted as a whole. Other parts are sorted within each row group. */
  readonly isCompacted: boolean;
  readonly rows: number;
}

/** The qualified name of the part's table. */
export function nameOf({ kind, isCompacted, number }: Part): string {
  return `logs.${kind}_${isCompacted ? 'compacted' : 'part'}_${number}`;
}

/** The table that a compaction or a vacuum fills before it replaces parts. Dropped at start if it was interrupted. */
export function copyNameOf({ kind, number }: Part): string {
  return `logs.${kind}_compacting_${number}`;
}

/** Methods that change parts must be called within `transaction`, by the holder of the file mutex. */
export class Parts {
  readonly #connection: DuckDBConnection;
  readonly #parts = new Map<LogKind, readonly Part[]>();
  #reserved: readonly Part[] = [];
  #lastNumber = 0;

  private constructor(connection: DuckDBConnection) {
    this.#connection = connection;
  }

  /** Reads the tables of the file and creates the missing ones. */
  static async open(connection: DuckDBConnection): Promise<Parts> {
    const parts = new Parts(connection);
    const tables = await connection.runAndReadAll(
      "select table_name from duckdb_tables() where database_name = 'logs'",
    );
    for (const [name] of tables.getRows()) await parts.#load(String(name));
    await parts.transaction(async () => {
      for (const kind of LOG_KINDS) if (parts.list(kind).length === 0) await parts.writablePart(kind);
    });
    return parts;
  }

  /** The parts of a kind, oldest first. There is always at least one. */
  list(kind: LogKind): readonly Part[] {
    return this.#parts.get(kind) ?? [];
  }

  listAll(): readonly Part[] {
    return LOG_KINDS.flatMap(kind => this.list(kind));
  }

  countRows(): number {
    return this.listAll().reduce((sum, { rows }) => sum + rows, 0);
  }

  /**
   * Runs `work` in one transaction on the file and updates the views of the kinds whose parts changed. `around` receives the
   * commit, to make it one step with something else. If anything fails before the commit, the parts are as before.
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
        if (namesOf(this.list(kind)) !== namesOf(before.get(kind) ?? [])) await this.#updateView(kind);
      await around(async () => {
        await this.#connection.run('commit');
        isCommitted = true;
      });
      return result;
    } catch (error) {
      if (isCommitted) throw error;
      for (const kind of LOG_KINDS) this.#parts.set(kind, before.get(kind) ?? []);
      await this.#connection.run('rollback').catch(() => {}); // a failed commit rolls back itself; report the first error
      throw error;
    }
  }

  /**
   * Returns the part that the next records of a kind go to, and creates it if the newest one is full. A part that ends in a
   * partial row group is continued only below `maxPartialRows` rows, because DuckDB rewrites that row group.
   */
  async writablePart(kind: LogKind, maxPartialRows = 0): Promise<Part> {
    const newest = this.list(kind).at(-1);
    if (newest !== undefined && this.#acceptsRows(newest, maxPartialRows)) return newest;
    const created = { kind, number: ++this.#lastNumber, isCompacted: false, rows: 0 };
    await this.createTable(kind, nameOf(created));
    this.#put(created);
    return created;
  }

  /** Creates an empty table. It is not a part, and no view has it, until `replace` registers it. */
  async createTable(kind: LogKind, name: string): Promise<void> {
    await this.#connection.run(`create table ${name} (${tableColumns(kind)})`);
  }

  /** Records that rows were added to a part, or deleted from it. Drops an empty part, unless it is the only one. */
  async adjustRowCount(part: Part, added: number): Promise<void> {
    const changed = { ...part, rows: part.rows + added };
    if (changed.rows === 0 && this.list(part.kind).length > 1) await this.#drop([part]);
    else this.#put(changed);
  }

  /** Drops parts and registers their replacement, which has the number of the newest of them. */
  async replace(old: readonly Part[], replacement: Part): Promise<void> {
    await this.#drop(old);
    this.#put(replacement);
  }

  /** Until the next call, flushes add nothing to these parts and retention deletes nothing from them. */
  reserve(parts: readonly Part[]): void {
    this.#reserved = parts;
  }

  isReserved({ number }: Part): boolean {
    return this.#reserved.some(reserved => reserved.number === number);
  }

  async #drop(parts: readonly Part[]): Promise<void> {
    for (const part of parts) {
      await this.#connection.run(`drop table ${nameOf(part)}`);
      const others = this.list(part.kind).filter(({ number }) => number !== part.number);
      this.#parts.set(part.kind, others);
    }
  }

  #put(part: Part): void {
    const others = this.list(part.kind).filter(({ number }) => number !== part.number);
    this.#parts.set(
      part.kind,
      [...others, part].sort((a, b) => a.number - b.number),
    );
  }

  #acceptsRows(part: Part, maxPartialRows: number): boolean {
    const { isCompacted, rows } = part;
    if (isCompacted || this.isReserved(part) || rows >= MAX_FLUSHED_ROWS) return false;
    return rows % ROW_GROUP_ROWS === 0 || rows < maxPartialRows;
  }

  async #updateView(kind: LogKind): Promise<void> {
    await this.#connection.run(createViewSql(kind, this.list(kind).map(nameOf)));
  }

  async #load(table: string): Promise<void> {
    const [, kind, state, digits] = TABLE_NAME.exec(table) ?? [];
    if (!isLogKind(kind)) return;
    const number = Number(digits);
    this.#lastNumber = Math.max(this.#lastNumber, number);
    if (state === 'compacting') {
      await this.#connection.run(`drop table logs.${table}`); // its sources are complete
      return;
    }
    const count = await this.#connection.runAndReadAll(`select count(*) from logs.${table}`);
    this.#put({ kind, number, isCompacted: state === 'compacted', rows: Number(count.value(0, 0)) });
  }
}

/** The view of a kind, newest table first. `tables` are qualified names, oldest first. */
export function createViewSql(kind: LogKind, tables: readonly string[]): string {
  const selects = tables.map(table => `from ${table.replace('logs.', '')}`).reverse();
  return `create or replace view logs.${kind}_logs as ${selects.join(' union all ')}`;
}

/** The column definitions of a kind's tables. */
export function tableColumns(kind: LogKind): string {
  return columnsOf(kind)
    .map(({ name, duckdb }) => `${name} ${duckdb}`)
    .join(', ');
}

function namesOf(parts: readonly Part[]): string {
  return parts.map(nameOf).join(' ');
}

function isLogKind(kind: string | undefined): kind is LogKind {
  return LOG_KINDS.some(each => each === kind);
}
