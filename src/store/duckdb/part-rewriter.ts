// Replaces parts by a copy of their records, for compaction, vacuum and the removal of records. A rewrite fills a temporary table that
// no query sees, with pauses while the store is busy. It reads the table back from the file and compares it with the sources. Then
// it drops the sources and renames the temporary table, in one transaction. If the copy differs, the sources stay. During the
// rewrite, flushes go to another part. If the process is killed, the next start drops the temporary table.
import { setTimeout as sleep } from 'node:timers/promises';
import type { LogKind } from '../../domain/log-columns.ts';
import { Mutex } from '../../system/mutex.ts';
import type { Checkpointer } from './checkpoint.ts';
import {
  addChecksums,
  type Checksum,
  EMPTY_CHECKSUM,
  findDifference,
  readChecksumInBatches,
} from './checksum.ts';
import type { AfterBatch, Condition } from './copy-records.ts';
import { nameOf, type Part, type Parts, temporaryNameOf } from './parts.ts';
import type { StoreConnection } from './run-long.ts';
import type { UncachedReader } from './uncached-reader.ts';

export interface RewriterDependencies {
  /** Fills the temporary table. A separate connection, because this takes long and flushes continue on the file writer. */
  readonly rewriteWriter: StoreConnection;
  readonly fileWriter: StoreConnection;
  readonly fileMutex: Mutex;
  readonly parts: Parts;
  readonly checkpointer: Checkpointer;
  readonly reader: UncachedReader;
  /** Called if a copy differs from its sources. The sources stay. */
  readonly onMismatch: (kind: LogKind, error: Error) => void;
  /** Throws if the disk has no space for a copy of this many rows. */
  readonly requireDiskSpace: (rows: number) => Promise<void>;
  /**
   * The time limit of a query. DuckDB can reject a checkpoint while a query reads a part that was replaced, so `#verify` retries
   * the checkpoint for twice this time.
   */
  readonly queryTimeoutMs: number;
  /** How many queries and batches of records the store has received so far. */
  readonly countOperations: () => number;
}

export interface Rewrite {
  /** Parts of one kind, oldest first, at least one. */
  readonly sources: readonly [Part, ...Part[]];
  /** Whether the copy is sorted as a whole. */
  readonly isCompacted: boolean;
  /** The records that `copy` leaves out. Default: none. */
  readonly except?: Condition;
  /** How many records `copy` keeps. Default: all of the sources. */
  readonly keptRows?: number;
  /** Copies the records of the sources to the table `to`. Returns how many. */
  copy(connection: StoreConnection, to: string, afterBatch: AfterBatch): Promise<number>;
  /** Called after the attempt to write a checkpoint, while the file mutex is still held. */
  onReplaced?(): Promise<void>;
}

export class PartRewriter {
  readonly #dependencies: RewriterDependencies;
  /** Compaction, vacuum, erasure and eviction exclude each other: only one can have parts reserved. */
  readonly #jobs = new Mutex();
  #isClosing = false;

  constructor(dependencies: RewriterDependencies) {
    this.#dependencies = dependencies;
  }

  get isClosing(): boolean {
    return this.#isClosing;
  }

  /** Calls `choose` while the file mutex is held, reserves the chosen parts and rewrites them. Returns whether there was work. */
  run(choose: () => Promise<Rewrite | undefined>): Promise<boolean> {
    const { fileMutex, parts, checkpointer } = this.#dependencies;
    return this.#jobs.run(async () => {
      const rewrite = await fileMutex.run(async () => {
        // Without a checkpoint, the blocks of the replaced parts would not become free.
        if (checkpointer.isPaused) return undefined;
        const chosen = await choose();
        if (this.#isClosing) return undefined;
        if (chosen !== undefined) parts.reserve(chosen.sources);
        return chosen;
      });
      if (rewrite === undefined) return false;
      await this.#rewrite(rewrite).finally(() => parts.releaseReserved());
      return true;
    });
  }

  /** Runs `work` while no rewrite, erasure or eviction runs, so the file has only those temporary tables that `work` creates. */
  runAlone<T>(work: () => Promise<T>): Promise<T> {
    return this.#jobs.run(work);
  }

  /**
   * Reserves all parts that exist now, then calls `planRewrite` for each and rewrites it if there is a result. Records that are
   * flushed meanwhile go to other parts. Must be called within `runAlone`.
   */
  async rewriteAll(planRewrite: (part: Part) => Promise<Rewrite | undefined>): Promise<void> {
    const { fileMutex, parts } = this.#dependencies;
    const all = await fileMutex.run(async () => {
      parts.reserve(parts.listAll());
      return parts.listAll();
    });
    try {
      for (const part of all) {
        if (this.#isClosing) throw new Error('the store is closed');
        const rewrite = await planRewrite(part);
        if (rewrite !== undefined) await this.#rewrite(rewrite);
      }
    } finally {
      parts.releaseReserved();
    }
  }

  /** Runs short work while the file mutex is held. Throws if the store is closing, because the connections may be closed. */
  withFileMutex<T>(work: () => Promise<T>): Promise<T> {
    return this.#dependencies.fileMutex.run(async () => {
      if (this.#isClosing) throw new Error('the store is closed');
      return work();
    });
  }

  /** Cancels the running rewrite. */
  async close(): Promise<void> {
    this.#isClosing = true;
    this.#dependencies.rewriteWriter.interrupt();
    await this.#jobs.idle();
  }

  async #rewrite(rewrite: Rewrite): Promise<void> {
    const { fileWriter, fileMutex, parts, requireDiskSpace } = this.#dependencies;
    const { sources, isCompacted } = rewrite;
    const { kind, number } = sources.at(-1) ?? sources[0];
    const { keptRows: rows = sources.reduce((sum, part) => sum + part.rows, 0) } = rewrite;
    const temporaryTable = temporaryNameOf({ kind, number });
    await requireDiskSpace(rows);
    try {
      await fileMutex.run(() => parts.createTable(kind, temporaryTable));
      const { copied, checksum } = await this.#fill(temporaryTable, rewrite);
      if (copied !== rows) throw new Error(`only ${copied} of ${rows} records were copied`);
      await this.#verify(kind, temporaryTable, checksum);
      await fileMutex.run(() => this.#replace(rewrite, { kind, number, isCompacted, rows, checksum }));
    } catch (error) {
      await fileMutex.run(() => fileWriter.run(`drop table if exists ${temporaryTable}`)).catch(() => {});
      throw error;
    }
  }

  async #replace({ sources, onReplaced }: Rewrite, replacement: Part): Promise<void> {
    const { fileWriter, parts, checkpointer } = this.#dependencies;
    await parts.transaction(async () => {
      await parts.replace(sources, replacement);
      const name = nameOf(replacement).replace('logs.', '');
      await fileWriter.run(`alter table ${temporaryNameOf(replacement)} rename to ${name}`);
      await parts.adjustRowCount(replacement, 0); // drops it if it is empty
    });
    await checkpointer.run();
    await onReplaced?.();
  }

  /**
   * Copies in one transaction, so that every row group but the last is full. Returns the number of copied records and the checksum
   * that they must have.
   */
  async #fill(to: string, rewrite: Rewrite): Promise<{ copied: number; checksum: Checksum }> {
    const { rewriteWriter } = this.#dependencies;
    await rewriteWriter.run('begin transaction');
    try {
      const afterBatch = this.#createThrottle();
      const copied = await rewrite.copy(rewriteWriter, to, afterBatch);
      const checksum = await this.#readChecksumOfSources(rewrite, afterBatch);
      await rewriteWriter.run('commit');
      return { copied, checksum };
    } catch (error) {
      await rewriteWriter.run('rollback').catch(() => {}); // report the first error
      throw error;
    }
  }

  /** Reads the sources only if their checksums are not known, or if some of their records are left out. */
  async #readChecksumOfSources({ sources, except }: Rewrite, afterBatch: AfterBatch): Promise<Checksum> {
    const { rewriteWriter } = this.#dependencies;
    let total = EMPTY_CHECKSUM;
    for (const { checksum, ...part } of sources) {
      const isKnown = checksum !== undefined && except === undefined;
      total = addChecksums(
        total,
        isKnown
          ? checksum
          : await readChecksumInBatches(rewriteWriter, part.kind, nameOf(part), afterBatch, except),
      );
    }
    return total;
  }

  /** Throws if the table in the file does not have the records of the sources. */
  async #verify(kind: LogKind, table: string, checksum: Checksum): Promise<void> {
    const { checkpointer, reader, onMismatch, queryTimeoutMs } = this.#dependencies;
    await checkpointer.runWhenIdle(work => this.withFileMutex(work), 2 * queryTimeoutMs);
    const afterBatch = this.#createThrottle();
    const difference = await findDifference(checksum, () => reader.readChecksum(kind, table, afterBatch));
    if (difference === undefined) return;
    onMismatch(kind, difference);
    throw difference;
  }

  /** If the store was used during a batch, pauses for as long as the batch took. */
  #createThrottle(): AfterBatch {
    const { countOperations } = this.#dependencies;
    let operations = countOperations();
    return async ms => {
      if (countOperations() !== operations && !this.#isClosing) await sleep(ms, undefined, { ref: false });
      operations = countOperations();
      if (this.#isClosing) throw new Error('the store is closed');
    };
  }
}
