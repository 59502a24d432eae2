// The parts of the file: tables with log records. Each kind has one or more. A flush writes a part of its own, which
// flush-verification.ts reads back from the file. Compaction replaces many parts by one. The view logs.<kind>_logs is the union of a
// kind's parts. Queries use mem.<kind>_logs (memtables.ts), which adds the memtables.
//
// Table names in the file: in <kind>_part_N, each flush or insert batch (at most one row group) is sorted by itself.
// <kind>_compacted_N is sorted as a whole. <kind>_rewriting_N is the temporary table of a rewrite: a compaction, a vacuum, a
// removal of records or a repair.
import { columnsOf, isLogKind, LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import type { SequenceRange } from '../store.ts';
import type { Checksum } from './checksum.ts';
import type { DuckDBConnection } from './driver.ts';
import { deleteChecksums, loadChecksums, type PartChecksum, saveChecksums } from './part-checksums.ts';

/** The size of a full row group in DuckDB. An append to a part rewrites its last row group if that is partial; full ones stay. */
export const ROW_GROUP_ROWS = 122_880;
/** A memtable or an insert batch is full at this size, because it is in memory. Large records reach it before ROW_GROUP_ROWS. */
export const MAX_SORT_BYTES = 128 * 1024 * 1024;
/**
 * Newest first within a project, because the endpoint logs.all returns the newest 100 records: as soon as DuckDB has 100, it
 * skips every row group with only older records. In ascending order each record would replace one of the 100 found before.
 */
export const PART_ORDER = 'order by project, timestamp desc';
/** A part that reaches this size gets no more rows, so that compaction can merge old and recent records separately. */
const MAX_UNCOMPACTED_PART_ROWS = 4 * ROW_GROUP_ROWS;

/** Earlier versions called the temporary table compacting or merging. */
const TABLE_NAME = /^(\w+)_(part|compacted|rewriting|compacting|merging)_(\d+)$/;

export interface Part {
  readonly kind: LogKind;
  /** Higher numbers are newer. */
  readonly number: number;
  /** Sorted as a whole. In other parts, each flush or insert batch is sorted by itself. */
  readonly isCompacted: boolean;
  readonly rows: number;
  /** The checksum of its records. Undefined if it is unknown, such as after retention has deleted some of them. */
  readonly checksum?: Checksum | undefined;
  /**
   * The sequence numbers of its records, which the spool keeps until the records were read back from the file. Undefined after
   * that, and for records that never were in the spool.
   */
  readonly unverified?: SequenceRange | undefined;
}

/** The qualified name of the part's table. */
export function nameOf({ kind, isCompacted, number }: Part): string {
  return `logs.${kind}_${isCompacted ? 'compacted' : 'part'}_${number}`;
}

/** The temporary table that a rewrite fills before it replaces parts. Dropped at the next start if interrupted. */
export function temporaryNameOf({ kind, number }: Pick<Part, 'kind' | 'number'>): string {
  return `logs.${kind}_rewriting_${number}`;
}

/** Methods that change parts must be called within `transaction`, by the holder of the file mutex. */
export class Parts {
  readonly #connection: DuckDBConnection;
  readonly #syncDirectory: () => Promise<void>;
  readonly #parts = new Map<LogKind, readonly Part[]>();
  #reserved: readonly Part[] = [];
  #lastNumber = 0;

  private constructor(connection: DuckDBConnection, syncDirectory: () => Promise<void>) {
    this.#connection = connection;
    this.#syncDirectory = syncDirectory;
  }

  /**
   * Finds the parts in the file, and creates an empty one for each kind that has none. `syncDirectory` is called after each
   * commit: a commit can create the file of the write-ahead log, which survives a power cut only after its directory is synced.
   */
  static async open(connection: DuckDBConnection, syncDirectory: () => Promise<void>): Promise<Parts> {
    const parts = new Parts(connection, syncDirectory);
    const tables = await connection.runAndReadAll(
      "select table_name from duckdb_tables() where database_name = 'logs'",
    );
    const checksums = await loadChecksums(connection);
    for (const [name] of tables.getRows()) await parts.#load(String(name), checksums);
    const withChecksum = parts.listAll().filter(({ checksum }) => checksum !== undefined);
    const valid = new Set(withChecksum.map(({ number }) => number));
    await parts.transaction(async () => {
      // Delete the checksums of parts that version 0.2.0 replaced or changed after a downgrade. If they stayed,
      // `dendro check --deep` would report these parts as damaged.
      const outdated = [...checksums.keys()].filter(number => !valid.has(number));
      await deleteChecksums(connection, outdated);
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
   * Runs `work` in one transaction on the file and updates the views of the kinds whose parts changed. `wrapCommit` is called
   * with the commit function, so that the caller can make the commit atomic with another change. If anything fails before the
   * commit, the parts are unchanged.
   */
  async transaction<T>(
    work: () => Promise<T>,
    wrapCommit: (commit: () => Promise<void>) => Promise<void> = commit => commit(),
  ): Promise<T> {
    const before = new Map(this.#parts);
    let isCommitted = false;
    await this.#connection.run('begin transaction');
    try {
      const result = await work();
      for (const kind of LOG_KINDS)
        if (namesOf(this.list(kind)) !== namesOf(before.get(kind) ?? [])) await this.#updateView(kind);
      await saveChecksums(this.#connection, [...before.values()].flat(), this.listAll());
      await wrapCommit(async () => {
        await this.#connection.run('commit');
        isCommitted = true;
        await this.#syncDirectory();
      });
      return result;
    } catch (error) {
      if (isCommitted) throw error;
      for (const kind of LOG_KINDS) this.#parts.set(kind, before.get(kind) ?? []);
      await this.#connection.run('rollback').catch(() => {}); // a failed commit has rolled back already; report the first error
      throw error;
    }
  }

  /** Returns an empty part of a kind. */
  async emptyPart(kind: LogKind): Promise<Part> {
    const newest = this.list(kind).at(-1);
    return newest?.rows === 0 && !this.isReserved(newest) ? newest : this.#create(kind);
  }

  /**
   * Returns the part for the next records of a kind: the newest one, or a new one if the newest is full, compacted, reserved or
   * unverified. If the newest part ends in a partial row group, DuckDB would rewrite that group, so the part is used only if it
   * has fewer than `maxRowsToExtendPartial` rows. 0: never.
   */
  async writablePart(kind: LogKind, maxRowsToExtendPartial = 0): Promise<Part> {
    const newest = this.list(kind).at(-1);
    if (newest !== undefined && this.#acceptsRows(newest, maxRowsToExtendPartial)) return newest;
    return this.#create(kind);
  }

  async #create(kind: LogKind): Promise<Part> {
    const created = { kind, number: ++this.#lastNumber, isCompacted: false, rows: 0 };
    await this.createTable(kind, nameOf(created));
    this.#put(created);
    return created;
  }

  /** Creates an empty table. It becomes a part only when `emptyPart`, `writablePart` or `replace` registers it. */
  async createTable(kind: LogKind, name: string): Promise<void> {
    await this.#connection.run(`create table ${name} (${tableColumns(kind)})`);
  }

  /** Registers what was written to an empty part. */
  setContent(part: Part, content: PartChecksum): void {
    this.#put({ ...part, rows: content.checksum.rows, ...content });
  }

  /**
   * Marks the part as verified, so that the spool can delete its records. `checksum` is undefined if the part is damaged and the
   * spool cannot repair it. Does nothing if the part has changed meanwhile.
   */
  setVerified(part: Part, checksum: Checksum | undefined): void {
    if (this.isCurrent(part)) this.#put({ ...part, checksum, unverified: undefined });
  }

  /** Whether the part was neither changed nor dropped since it was listed. */
  isCurrent(part: Part): boolean {
    return this.list(part.kind).includes(part);
  }

  /** Updates the row count of a part after an insert or a deletion. Drops an empty part, unless it is the only one of its kind. */
  async adjustRowCount(part: Part, delta: number): Promise<void> {
    const rows = part.rows + delta;
    const changed = {
      ...part,
      rows,
      checksum: delta === 0 ? part.checksum : undefined,
      unverified: rows === 0 ? undefined : part.unverified,
    };
    if (changed.rows === 0 && this.list(part.kind).length > 1) await this.#drop([part]);
    else this.#put(changed);
  }

  /** Drops parts and registers their replacement, which has the number of the newest of them. */
  async replace(old: readonly Part[], replacement: Part): Promise<void> {
    await this.#drop(old);
    this.#put(replacement);
  }

  /** Until `releaseReserved`, flushes and appends write nothing to these parts, and retention deletes nothing from them. */
  reserve(parts: readonly Part[]): void {
    this.#reserved = parts;
  }

  releaseReserved(): void {
    this.#reserved = [];
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

  #acceptsRows(part: Part, maxRowsToExtendPartial: number): boolean {
    const { isCompacted, rows } = part;
    if (isCompacted || this.isReserved(part) || part.unverified !== undefined) return false;
    if (rows >= MAX_UNCOMPACTED_PART_ROWS) return false;
    return rows % ROW_GROUP_ROWS === 0 || rows < maxRowsToExtendPartial;
  }

  async #updateView(kind: LogKind): Promise<void> {
    await this.#connection.run(createViewSql(kind, this.list(kind).map(nameOf)));
  }

  async #load(table: string, checksums: ReadonlyMap<number, PartChecksum>): Promise<void> {
    const [, kind, state, digits] = TABLE_NAME.exec(table) ?? [];
    if (!isLogKind(kind)) return;
    const number = Number(digits);
    this.#lastNumber = Math.max(this.#lastNumber, number);
    if (state !== 'part' && state !== 'compacted') {
      await this.#connection.run(`drop table logs.${table}`); // the parts that it copied still exist
      return;
    }
    const count = await this.#connection.runAndReadAll(`select count(*) from logs.${table}`);
    const rows = Number(count.value(0, 0));
    const saved = checksums.get(number);
    // The saved checksum no longer applies if, after a downgrade, version 0.2.0 added records to the part, or deleted records of
    // a verified part. An unverified part with too few records keeps its checksum, so that verification finds the loss and
    // rewrites the part from the spool.
    const stillApplies =
      saved?.checksum.rows === rows || (saved?.unverified !== undefined && rows < saved.checksum.rows);
    this.#put({ kind, number, isCompacted: state === 'compacted', rows, ...(stillApplies ? saved : {}) });
  }
}

/** SQL that creates the view logs.<kind>_logs. `tables` are oldest first; the view reads the newest first. */
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

/** The same columns for a table in memory, where DuckDB compresses nothing. */
export function memoryTableColumns(kind: LogKind): string {
  return tableColumns(kind).replaceAll(' using compression zstd', '');
}

function namesOf(parts: readonly Part[]): string {
  return parts.map(nameOf).join(' ');
}
