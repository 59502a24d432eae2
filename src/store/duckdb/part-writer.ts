// Writes parts. A part is written to a temporary file, synced, and read back by another instance of DuckDB, which has none of its
// blocks in memory. It becomes part of the store only when Parts.commit names it in the manifest and then renames the file. No byte
// of it changes later.
import { rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import type { LogKind } from '../../domain/log-columns.ts';
import type { Observe } from '../../observe/event.ts';
import { syncDirectory, syncFile } from '../../system/files.ts';
import { Mutex } from '../../system/mutex.ts';
import { hashFile } from '../../system/open-file.ts';
import { addContents, EMPTY, readContent, type TableContent } from './checksum.ts';
import { type AfterBatch, type Condition, copySorted } from './copy-records.ts';
import { quote } from './database.ts';
import { DuckDBInstance } from './driver.ts';
import { isSystemError, messageOf } from './errors.ts';
import type { PartEntry } from './manifest.ts';
import { partAlias, partFileName, temporaryName } from './part-file.ts';
import type { StoreConnection } from './run-long.ts';
import { tableColumns } from './staging.ts';
import { MIN_FILTERED_RECORDS, readFilterChecksum, writeTextFilter } from './text-filter.ts';

/** A part with fewer records has small blocks: a part of 500 records then takes 94 KB instead of 537 KB. */
const SMALL_PART_ROWS = 20_000;
const SMALL_BLOCK_BYTES = 16_384;
const BLOCK_BYTES = 262_144;
/** A limit, not a reservation. */
const READER_MEMORY_LIMIT = '1GB';
/** Estimated size of a record's columns other than its message and metadata. */
const OTHER_COLUMNS_BYTES = 200;

export interface PartWriterDependencies {
  readonly partsDirectory: string;
  readonly nextPartNumber: () => number;
  readonly observe: Observe;
  /** A rewritten part with at least this many records gets a text filter. */
  readonly minFilteredRecords?: number | undefined;
}

/** Records for a part. Each run is sorted by itself. */
export interface Run {
  /** A table or a subquery. */
  readonly from: string;
  /** The records of `from` that are left out. */
  readonly except?: Condition | undefined;
  /** What the run must contain. */
  readonly content: TableContent;
}

/** `textFilter`: the checksum of the text filter, if there is one. */
type PartContent = TableContent & { readonly textFilter?: string };

/** What was read back differs from what was written. */
class MismatchError extends Error {}

export class PartWriter {
  readonly #dependencies: PartWriterDependencies;
  /** Held while a part is read back. */
  readonly #reading = new Mutex();
  /** Has no blocks of parts in memory. Kept for the next part: to create an instance takes as long as to read a small part. */
  #reader: DuckDBInstance | undefined;

  constructor(dependencies: PartWriterDependencies) {
    this.#dependencies = dependencies;
  }

  /** Writes a part of one run. If what is read back differs, throws; the caller tries again later. */
  async write(
    connection: StoreConnection,
    kind: LogKind,
    run: Run,
    afterBatch?: AfterBatch,
    mayHaveFilter = false,
  ): Promise<PartEntry> {
    const { minFilteredRecords = MIN_FILTERED_RECORDS } = this.#dependencies;
    const part = await this.create(connection, kind, run.content.rows);
    try {
      await part.add(run, afterBatch);
      if (mayHaveFilter && run.content.rows >= minFilteredRecords) await part.addTextFilter(afterBatch);
      return await part.finish(afterBatch);
    } catch (error) {
      await part.discard();
      throw error;
    }
  }

  /** Creates an empty part. `rows` is how many records it will have, if known. The connection writes one part at a time. */
  async create(connection: StoreConnection, kind: LogKind, rows = SMALL_PART_ROWS): Promise<NewPart> {
    const { partsDirectory, nextPartNumber } = this.#dependencies;
    const part = new NewPart(
      this,
      connection,
      kind,
      join(partsDirectory, partFileName(kind, nextPartNumber())),
    );
    await part.create(rows < SMALL_PART_ROWS ? SMALL_BLOCK_BYTES : BLOCK_BYTES);
    return part;
  }

  /** Returns the entry of a part that is durable. Throws a MismatchError if it cannot be read or differs from what was written. */
  async verify(file: string, kind: LogKind, expected: PartContent, afterBatch?: AfterBatch) {
    const hasTextFilter = expected.textFilter !== undefined;
    try {
      const content = await this.#reading.run(() => this.#read(file, kind, hasTextFilter, afterBatch));
      const { rows, sum, since, until, textBytes, largeTextBytes } = content;
      if (rows !== expected.rows) throw new MismatchError(`the part has ${rows} of ${expected.rows} records`);
      if (sum !== expected.sum)
        throw new MismatchError('the records of the part differ from those that were written');
      if (content.textFilter !== expected.textFilter)
        throw new MismatchError('the text filter of the part differs from what was written');
      return {
        ...{ kind, records: rows, textBytes, largeTextBytes },
        ...{ since: since ?? 0n, until: until ?? 0n, hasTextFilter },
        ...(await hashFile(file)),
      };
    } catch (error) {
      if (error instanceof MismatchError)
        this.#dependencies.observe({ type: 'verification_failed', kind, error });
      throw error;
    }
  }

  async close(): Promise<void> {
    await this.#reading.idle();
    this.#closeReader();
  }

  async #read(
    file: string,
    kind: LogKind,
    hasTextFilter: boolean,
    afterBatch?: AfterBatch,
  ): Promise<PartContent> {
    this.#reader ??= await createReaderInstance();
    const connection = await this.#reader.connect();
    try {
      await connection.run(`attach ${quote(file)} as part (read_only)`);
      const content = await readContent(connection, kind, 'part.records', afterBatch);
      return hasTextFilter
        ? { ...content, textFilter: await readFilterChecksum(connection, 'part') }
        : content;
    } catch (error) {
      if (isSystemError(error) || !/^\w+( \w+)* Error: /.test(messageOf(error))) throw error;
      throw new MismatchError(messageOf(error));
    } finally {
      await connection.run('detach database if exists part').catch(() => this.#closeReader());
      connection.closeSync();
    }
  }

  #closeReader(): void {
    this.#reader?.closeSync();
    this.#reader = undefined;
  }
}

/** A part that is being written. */
export class NewPart {
  readonly #writer: PartWriter;
  readonly #connection: StoreConnection;
  readonly #kind: LogKind;
  readonly #file: string;
  readonly #temporary: string;
  /** While it is written, it has a name of its own in DuckDB. */
  readonly #alias: string;
  /** What the part must contain. */
  written: PartContent = EMPTY;
  runs = 0;

  constructor(writer: PartWriter, connection: StoreConnection, kind: LogKind, path: string) {
    this.#writer = writer;
    this.#connection = connection;
    this.#kind = kind;
    this.#file = basename(path);
    this.#temporary = temporaryName(path);
    this.#alias = `new_${partAlias(this.#file)}`;
  }

  async create(blockBytes: number): Promise<void> {
    try {
      // Without a write-ahead log: a part that is not finished is deleted at the next start. zstd requires the latest storage version.
      await this.#connection.run(
        `attach ${quote(this.#temporary)} as ${this.#alias}
        (storage_version 'latest', recovery_mode 'no_wal_writes', block_size ${blockBytes})`,
      );
      await this.#connection.run(`create table ${this.#alias}.records (${tableColumns(this.#kind)})`);
    } catch (error) {
      await this.discard();
      throw error;
    }
  }

  /** Adds a sorted run in one transaction, so that every row group but the last is full. */
  async add({ from, except, content }: Run, afterBatch?: AfterBatch): Promise<void> {
    const to = `${this.#alias}.records`;
    const recordBytes = OTHER_COLUMNS_BYTES + content.textBytes / Math.max(1, content.rows);
    await this.#connection.run('begin transaction');
    try {
      const copied = await copySorted(this.#connection, from, to, recordBytes, afterBatch, except);
      if (copied !== content.rows) throw new Error(`${copied} of ${content.rows} records were copied`);
      await this.#connection.run('commit');
    } catch (error) {
      await this.#connection.run('rollback').catch(() => {}); // report the first error
      throw error;
    }
    this.written = addContents(this.written, content);
    this.runs++;
  }

  /** No run can be added afterwards. */
  async addTextFilter(afterBatch?: AfterBatch): Promise<void> {
    const textFilter = await writeTextFilter(this.#connection, this.#alias, this.written.rows, afterBatch);
    this.written = { ...this.written, textFilter };
  }

  /** Makes the part durable and reads it back. */
  async finish(afterBatch?: AfterBatch): Promise<PartEntry> {
    await this.#connection.run(`checkpoint ${this.#alias}`);
    await this.#connection.run(`detach ${this.#alias}`);
    await syncFile(this.#temporary);
    await syncDirectory(dirname(this.#temporary));
    const verified = await this.#writer.verify(this.#temporary, this.#kind, this.written, afterBatch);
    return { file: this.#file, ...verified, runs: this.runs };
  }

  /** Deletes what was written. */
  async discard(): Promise<void> {
    await this.#connection.run(`detach database if exists ${this.#alias}`).catch(() => {}); // the file is deleted in any case
    // A failed checkpoint leaves a write-ahead log, although none is used otherwise.
    for (const file of [this.#temporary, `${this.#temporary}.wal`]) await rm(file, { force: true });
  }
}

/** Without the empty `temp_directory`, DuckDB would create `.tmp` in the working directory. */
export function createReaderInstance(memoryLimit = READER_MEMORY_LIMIT): Promise<DuckDBInstance> {
  return DuckDBInstance.create(':memory:', { threads: '1', memory_limit: memoryLimit, temp_directory: '' });
}
