// Reads records from the blocks that are in the file, not from those that DuckDB has in memory: after a write, DuckDB keeps the
// blocks as it meant to write them, even if the disk stored something else. A second instance of DuckDB in this process
// must not open the same file: when it closes the file, the operating system releases the lock of the first instance (POSIX
// locks). So this copies the blocks of a table with plain reads into a sparse file, in which a second instance reads the table.
import { type FileHandle, open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { LogKind } from '../../domain/log-columns.ts';
import { Mutex } from '../../system/mutex.ts';
import { addChecksums, type Checksum, EMPTY_CHECKSUM, readChecksum, UnreadableError } from './checksum.ts';
import type { AfterBatch } from './copy-records.ts';
import { type DuckDBConnection, DuckDBInstance } from './driver.ts';
import type { Database } from './open-database.ts';
import { ROW_GROUP_ROWS } from './parts.ts';
import { quote } from './recover-file.ts';

/** A DuckDB file starts with three headers of 4 KiB. Blocks follow. */
const HEADERS_BYTES = 3 * 4096;
/** A copy that has reached this size gets no more row groups. Row groups are copied as a whole, so a copy can be larger. */
const COPY_BYTES = 64 * 1024 * 1024;
/** The maximum size of one read from the file. */
const READ_BYTES = 4 * 1024 * 1024;
/**
 * A limit, not a reservation. It is so high because a flushed part has up to about 128 MiB of records, and DuckDB holds them in
 * memory several times while it reads a copy. That takes less than this limit.
 */
const MEMORY_LIMIT = '1GB';
/** Errors that say nothing about the records: the copy could not be opened or read, such as with too many open files. */
const SYSTEM_ERROR =
  /^(Out of Memory|Interrupt|Connection) Error|^IO Error: (Cannot open|Could not (set lock on|read from) file)/;

export interface UncachedReaderDependencies {
  readonly database: Database;
  readonly fileWriter: DuckDBConnection;
  /** Held while blocks are copied, so that no checkpoint changes them. */
  readonly fileMutex: Mutex;
}

/** Some row groups of a table, and the ids of the blocks that they need. */
interface RowGroups {
  readonly first: number;
  last: number;
  readonly blocks: Set<number>;
}

export class UncachedReader {
  readonly #dependencies: UncachedReaderDependencies;
  readonly #file: string;
  /** There is one copy at a time. */
  readonly #copies = new Mutex();
  #instance: DuckDBInstance | undefined;

  constructor(dependencies: UncachedReaderDependencies) {
    this.#dependencies = dependencies;
    this.#file = join(dependencies.database.stagingDirectory, 'verify.duckdb');
  }

  /**
   * Returns the checksum of a table that no transaction has changed since the last checkpoint, and of which every row group but the
   * last is full. Throws an UnreadableError if its blocks cannot be read. Any other error says nothing about the table.
   */
  async readChecksum(
    kind: LogKind,
    table: string,
    afterBatch: AfterBatch = async () => {},
  ): Promise<Checksum> {
    const { fileMutex } = this.#dependencies;
    let total = EMPTY_CHECKSUM;
    for (const groups of await fileMutex.run(() => this.#listRowGroups(table))) {
      const startedAt = performance.now();
      const checksum = await this.#copies.run(async () => {
        try {
          await fileMutex.run(() => this.#copyBlocks(groups.blocks));
          return await this.#readCopy(kind, table, groups);
        } finally {
          await rm(this.#file, { force: true });
        }
      });
      total = addChecksums(total, checksum);
      await afterBatch(performance.now() - startedAt);
    }
    return total;
  }

  async #listRowGroups(table: string): Promise<RowGroups[]> {
    const { fileWriter } = this.#dependencies;
    const maxBlocks = COPY_BYTES / (await this.#readBlockBytes());
    const result = await fileWriter.runAndReadAll(
      `select distinct row_group_id, unnest(list_prepend(block_id, additional_block_ids)) as block
      from pragma_storage_info('${table}') order by all`,
    );
    const all: RowGroups[] = [];
    for (const [group, block] of result.getRows().map(row => row.map(Number))) {
      if (group === undefined || block === undefined) continue;
      let current = all.at(-1);
      if (current === undefined || (group !== current.last && current.blocks.size >= maxBlocks)) {
        current = { first: group, last: group, blocks: new Set() };
        all.push(current);
      }
      current.last = group;
      if (block >= 0) current.blocks.add(block); // a constant needs no block
    }
    return all;
  }

  /** Copies the headers, all metadata and these blocks to their offsets in a file with holes. */
  async #copyBlocks(blocks: ReadonlySet<number>): Promise<void> {
    const { database, fileWriter } = this.#dependencies;
    const blockBytes = await this.#readBlockBytes();
    const metadata = await fileWriter.runAndReadAll("select block_id from pragma_metadata_info('logs')");
    const all = new Set([...blocks, ...metadata.getRows().map(([block]) => Number(block))]);
    const copy = await open(this.#file, 'w', 0o600);
    try {
      await copyRange(database, copy, 0, HEADERS_BYTES);
      for (const [first, count] of toRuns(all, READ_BYTES / blockBytes))
        await copyRange(database, copy, HEADERS_BYTES + first * blockBytes, count * blockBytes);
      await copy.truncate(database.fileSize());
    } finally {
      await copy.close();
    }
  }

  async #readCopy(kind: LogKind, table: string, { first, last }: RowGroups): Promise<Checksum> {
    // Kept for the next copy: to create an instance takes as long as to read a small part.
    this.#instance ??= await DuckDBInstance.create(':memory:', { threads: '1', memory_limit: MEMORY_LIMIT });
    const connection = await this.#instance.connect();
    try {
      await connection.run(`attach ${quote(this.#file)} as copy (read_only)`);
      const sql = `rowid >= ${first * ROW_GROUP_ROWS} and rowid < ${(last + 1) * ROW_GROUP_ROWS}`;
      return await readChecksum(connection, kind, table.replace('logs.', 'copy.'), { sql, values: {} });
    } catch (error) {
      const { message } = error as Error;
      if (SYSTEM_ERROR.test(message)) throw error;
      throw new UnreadableError(message.split('\n', 1)[0]);
    } finally {
      await connection.run('detach database if exists copy').catch(() => this.#closeInstance());
      connection.closeSync();
    }
  }

  /** Waits for the copy that is being read. */
  async close(): Promise<void> {
    await this.#copies.idle();
    this.#closeInstance();
  }

  #closeInstance(): void {
    this.#instance?.closeSync();
    this.#instance = undefined;
  }

  async #readBlockBytes(): Promise<number> {
    const result = await this.#dependencies.fileWriter.runAndReadAll(
      "select block_size from pragma_database_size() where database_name = 'logs'",
    );
    return Number(result.value(0, 0));
  }
}

async function copyRange(
  database: Database,
  copy: FileHandle,
  offset: number,
  length: number,
): Promise<void> {
  const data = await database.readFile(offset, length).catch((error: Error) => {
    throw new UnreadableError(error.message);
  });
  for (let written = 0; written < data.length; ) {
    const { bytesWritten } = await copy.write(data, written, data.length - written, offset + written);
    written += bytesWritten;
  }
}

/** Returns runs of consecutive blocks as [first, count], each of at most `maxCount` blocks. */
function toRuns(blocks: ReadonlySet<number>, maxCount: number): [number, number][] {
  const runs: [number, number][] = [];
  for (const block of [...blocks].sort((a, b) => a - b)) {
    const run = runs.at(-1);
    if (run !== undefined && run[0] + run[1] === block && run[1] < maxCount) run[1]++;
    else runs.push([block, 1]);
  }
  return runs;
}
