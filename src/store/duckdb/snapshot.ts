// The store's file at one moment, for a backup. After a checkpoint the file alone has all flushed records. No checkpoint runs
// until the file has been read, so what the last one wrote does not change. Flushes continue: they write to the write-ahead
// log and to blocks that the last checkpoint does not use.
import { DendroError } from '../../domain/errors.ts';
import { LOG_KINDS, type LogKind } from '../../domain/log-columns.ts';
import { STORE_FILE } from '../../system/data-directory.ts';
import { Mutex } from '../../system/mutex.ts';
import { readChunks } from '../../system/open-file.ts';
import { storeClosed } from '../query-queue.ts';
import type { StoreSnapshot } from '../store.ts';
import type { Checkpointer } from './checkpoint.ts';
import type { Database } from './open-database.ts';
import type { Parts } from './parts.ts';

export interface SnapshotDependencies {
  readonly database: Database;
  readonly fileMutex: Mutex;
  readonly checkpointer: Checkpointer;
  readonly parts: Parts;
  readonly flushedUpTo: (kind: LogKind) => number;
}

export class Snapshots {
  readonly #dependencies: SnapshotDependencies;
  /** Lets `close` wait for the reads that have started: afterwards the database closes its file. */
  readonly #reads = new Mutex();
  #isClosed = false;

  constructor(dependencies: SnapshotDependencies) {
    this.#dependencies = dependencies;
  }

  take(onSnapshot: () => void): Promise<StoreSnapshot> {
    const { fileMutex, checkpointer } = this.#dependencies;
    return fileMutex.run(async () => {
      // Fails if another snapshot pauses checkpoints, another transaction writes to the file, or the disk is nearly full.
      if (!(await checkpointer.run()))
        throw new DendroError(
          'unavailable',
          'the store cannot write all records to its file now, because another backup or a compaction is running, or the disk is nearly full; retry later, or stop the server and back up its data directory',
          { retryAfterSeconds: 60 },
        );
      const resume = checkpointer.pause();
      const snapshot = this.#createSnapshot(() => {
        const isFirstRelease = resume();
        if (!isFirstRelease || this.#isClosed) return;
        void fileMutex.run(() => checkpointer.run()).catch(() => {}); // if it fails, the next checkpoint does its work
      });
      try {
        onSnapshot();
        return snapshot;
      } catch (error) {
        snapshot.release();
        throw error;
      }
    });
  }

  /** Fails the reads of all snapshots from now on, and waits for those that have started. */
  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#reads.idle();
  }

  #createSnapshot(release: () => void): StoreSnapshot {
    const { database, parts, flushedUpTo } = this.#dependencies;
    const bytes = database.fileSize();
    const flushed = new Map(LOG_KINDS.map(kind => [kind, flushedUpTo(kind)]));
    const countRows = (kind: LogKind) => parts.list(kind).reduce((sum, { rows }) => sum + rows, 0);
    const read = (offset: number, length: number) =>
      this.#reads.run(() =>
        this.#isClosed ? Promise.reject(storeClosed()) : database.readFile(offset, length),
      );
    return {
      files: [{ path: STORE_FILE, bytes, content: () => readChunks(read, bytes) }],
      records: new Map(LOG_KINDS.map(kind => [kind, countRows(kind)])),
      durableUpTo: kind => flushed.get(kind) ?? 0,
      release,
    };
  }
}
