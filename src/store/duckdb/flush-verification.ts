// Reads flushed parts back from the file before the spool deletes their records. A part that differs from what was written is
// rewritten with the records of the spool. The file stores which parts are unverified (part-checksums.ts).
import type { VerificationOutcome } from '../../domain/damage.ts';
import type { LogKind } from '../../domain/log-columns.ts';
import { offsetAfterLines } from '../../domain/log-line.ts';
import type { Mutex } from '../../system/mutex.ts';
import { insertWithBisect } from '../insert-with-bisect.ts';
import type { ReadSpooled, SequenceRange, SpooledLines, StoreCallbacks } from '../store.ts';
import type { Checkpointer } from './checkpoint.ts';
import { type Checksum, findDifference, readChecksum } from './checksum.ts';
import { copySorted } from './copy-records.ts';
import type { DuckDBConnection } from './driver.ts';
import type { Database } from './open-database.ts';
import { memoryTableColumns, nameOf, type Part, type Parts, temporaryNameOf } from './parts.ts';
import type { StoreConnection } from './run-long.ts';
import { isDataError, Staging } from './staging.ts';
import type { UncachedReader } from './uncached-reader.ts';

/** The pause after a damaged part could not be rewritten, or its new copy could not be verified. */
const RETRY_MS = 60_000;
/** The pause after a checkpoint could not run, such as during a compaction. Other writers wait during each attempt. */
const CHECKPOINT_RETRY_MS = 2_000;

export interface FlushVerificationDependencies {
  readonly database: Database;
  readonly fileWriter: StoreConnection;
  readonly fileMutex: Mutex;
  readonly parts: Parts;
  readonly checkpointer: Checkpointer;
  readonly reader: UncachedReader;
  readonly callbacks: StoreCallbacks;
  /** Throws if the disk has no space for this many bytes. */
  readonly requireDiskSpace: (bytes: number) => Promise<void>;
}

interface UnverifiedPart extends Part {
  readonly checksum: Checksum;
  readonly unverified: SequenceRange;
}

/** Identifies a flush by its first sequence number. Flushes of the same kind that write a part all have different ones. */
export interface FlushStart {
  readonly kind: LogKind;
  readonly firstSequence: number;
}

/** The spool does not have all records of the part any more, such as after an operator has deleted segments. */
class IncompleteSpoolError extends Error {}

export class FlushVerification {
  readonly #dependencies: FlushVerificationDependencies;
  readonly #staging: Staging;
  /** The running flush. It verifies its own part, so `verifyPending` skips that part. */
  #flushing: FlushStart | undefined;
  #retryAt = 0;

  constructor(dependencies: FlushVerificationDependencies) {
    this.#dependencies = dependencies;
    this.#staging = new Staging(dependencies.database.stagingDirectory, 'verify');
  }

  /** Implements Store.verifiedUpTo. */
  verifiedUpTo(kind: LogKind, flushedUpTo: number): number {
    const unverified = this.#listUnverified().filter(part => part.kind === kind);
    return Math.min(flushedUpTo, ...unverified.map(part => part.unverified.firstSequence));
  }

  /**
   * Runs `flush`, then verifies the part that it wrote. `flush` returns whether the part is in the file and not only in DuckDB's
   * write-ahead log. Leaves the part to `verifyPending` if it is damaged or cannot be verified now, or if `flush` throws after its
   * commit. One call at a time.
   */
  async runFlush(start: FlushStart, flush: () => Promise<boolean>): Promise<void> {
    this.#flushing = start;
    try {
      if (!(await flush())) return;
      const part = this.#listUnverified().find(each => isStartOf(start, each));
      if (part === undefined) return; // all of its records were rejected
      const difference = await this.#findDifference(part).catch((error: unknown) => error);
      if (difference === undefined) await this.#setVerified(part, part.checksum);
    } finally {
      this.#flushing = undefined;
    }
  }

  /** Implements Store.verifyFlushed. One call at a time. */
  async verifyPending(readSpooled: ReadSpooled): Promise<void> {
    const { fileMutex, checkpointer } = this.#dependencies;
    const pending = this.#listPending();
    if (pending.length === 0 || performance.now() < this.#retryAt) return;
    if (!(await fileMutex.run(() => checkpointer.run()))) {
      // While a backup pauses checkpoints, `run` returns at once, so the next attempt needs no delay.
      if (!checkpointer.isPaused) this.#retryAt = performance.now() + CHECKPOINT_RETRY_MS;
      return;
    }
    for (const part of pending) {
      const difference = await this.#findDifference(part);
      if (difference === undefined) await this.#setVerified(part, part.checksum);
      else await this.#repair(part, difference, readSpooled);
    }
  }

  #listPending(): UnverifiedPart[] {
    const flushing = this.#flushing;
    return this.#listUnverified().filter(part => flushing === undefined || !isStartOf(flushing, part));
  }

  #listUnverified(): UnverifiedPart[] {
    return this.#dependencies.parts.listAll().filter(isUnverified);
  }

  #findDifference({ kind, checksum, ...part }: UnverifiedPart): Promise<Error | undefined> {
    const { reader } = this.#dependencies;
    return findDifference(checksum, () => reader.readChecksum(kind, nameOf({ kind, ...part })));
  }

  async #setVerified(part: UnverifiedPart, checksum: Checksum | undefined): Promise<void> {
    const { fileMutex, parts } = this.#dependencies;
    await fileMutex.run(() => parts.transaction(async () => parts.setVerified(part, checksum)));
  }

  async #repair(part: UnverifiedPart, difference: Error, readSpooled: ReadSpooled): Promise<void> {
    const { fileMutex, checkpointer, callbacks } = this.#dependencies;
    const report = (error: unknown, outcome: VerificationOutcome) =>
      callbacks.observe?.({ type: 'verification_failed', kind: part.kind, error, outcome });
    try {
      const rewritten = await this.#rewrite(part, readSpooled);
      if (rewritten === undefined) return;
      const isInFile = await fileMutex.run(() => checkpointer.run());
      const remaining = isInFile ? await this.#findDifference(rewritten) : difference;
      if (remaining !== undefined) throw remaining;
      await this.#setVerified(rewritten, rewritten.checksum);
      report(difference, 'rewritten');
    } catch (error) {
      const isInSpool = !(error instanceof IncompleteSpoolError);
      report(error, isInSpool ? 'retrying' : 'not in the spool');
      if (isInSpool) this.#retryAt = performance.now() + RETRY_MS;
      // The spool cannot repair this part any more, so the spool need not keep the segments with the part's records.
      else await this.#setVerified(part, undefined);
    }
  }

  /**
   * Replaces the part by one with the records of the spool. For queries this is one atomic step. Returns undefined if the part was
   * changed or dropped meanwhile, such as by retention.
   */
  async #rewrite(part: UnverifiedPart, readSpooled: ReadSpooled): Promise<UnverifiedPart | undefined> {
    const { database, fileMutex, parts } = this.#dependencies;
    const { kind, number, unverified, checksum } = part;
    const connection = await database.connect();
    const table = `mem.rewritten_${kind}_${number}`;
    try {
      await connection.run(`create or replace table ${table} (${memoryTableColumns(kind)})`);
      let bytes = 0;
      for await (const lines of readSpooled(kind, unverified))
        bytes += await this.#insert(connection, table, cut(lines, unverified));
      const spooled = await readChecksum(connection, kind, table);
      return await fileMutex.run(async () => {
        if (!parts.isCurrent(part)) return undefined;
        if (spooled.rows < checksum.rows)
          throw new IncompleteSpoolError(
            `a part with ${checksum.rows} records is damaged, and the spool has only ${spooled.rows} of them`,
          );
        const rewritten = { ...part, rows: spooled.rows, checksum: spooled };
        await this.#replace(part, rewritten, table, bytes);
        return rewritten;
      });
    } finally {
      await connection.run(`drop table if exists ${table}`).finally(() => connection.closeSync());
    }
  }

  async #replace(part: Part, rewritten: Part, table: string, bytes: number): Promise<void> {
    const { fileWriter, parts, requireDiskSpace } = this.#dependencies;
    await requireDiskSpace(bytes);
    await parts.transaction(async () => {
      await parts.createTable(part.kind, temporaryNameOf(part));
      await copySorted(fileWriter, table, temporaryNameOf(part), bytes / rewritten.rows);
      await parts.replace([part], rewritten);
      const name = nameOf(part).replace('logs.', '');
      await fileWriter.run(`alter table ${temporaryNameOf(part)} rename to ${name}`);
    });
  }

  /** Leaves out the records that the store rejected before. Returns the size of the lines. */
  async #insert(connection: DuckDBConnection, table: string, records: SpooledLines): Promise<number> {
    const { kind, count, lines } = records;
    if (count === 0) return 0;
    await insertWithBisect(lines, count, {
      isRowError: isDataError,
      insert: chunk =>
        this.#staging.insert((sql, values) => connection.run(sql, values), kind, table, [chunk]),
      reject: () => {},
    });
    return lines.length;
  }
}

function isUnverified(part: Part): part is UnverifiedPart {
  return part.unverified !== undefined && part.checksum !== undefined;
}

function isStartOf({ kind, firstSequence }: FlushStart, part: UnverifiedPart): boolean {
  return part.kind === kind && part.unverified.firstSequence === firstSequence;
}

/** Returns only the records of the range. */
function cut(block: SpooledLines, { firstSequence, nextSequence }: SequenceRange): SpooledLines {
  const skipped = Math.max(0, firstSequence - block.firstSequence);
  const end = Math.min(block.count, nextSequence - block.firstSequence);
  const lines = block.lines.subarray(
    offsetAfterLines(block.lines, skipped),
    offsetAfterLines(block.lines, Math.max(skipped, end)),
  );
  return { ...block, firstSequence: block.firstSequence + skipped, count: Math.max(0, end - skipped), lines };
}
