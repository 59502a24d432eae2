// Moves committed changes from DuckDB's write-ahead log into the file. They are already durable, so a checkpoint that cannot
// run now is skipped; the next one moves them.
import { setTimeout as sleep } from 'node:timers/promises';
import { isDiskFull } from '../../system/disk-full.ts';
import type { DuckDBConnection } from './driver.ts';

/** The maximum number of attempts for one checkpoint while DuckDB rejects it. */
const ATTEMPTS = 5;
/** The pause between the attempts of one checkpoint. */
const ATTEMPT_DELAY_MS = 20;
/** The pause between the checkpoints that `runWhenIdle` tries. */
const IDLE_RETRY_MS = 200;

/** Why a checkpoint cannot run now. */
type Obstacle = 'a backup is running' | 'the disk is nearly full' | 'another transaction is running';

type Run = <T>(work: () => Promise<T>) => Promise<T>;

export interface CheckpointDependencies {
  readonly connection: DuckDBConnection;
  /** DuckDB invalidates a file whose checkpoint runs out of disk space, so a checkpoint is skipped if there is not enough. */
  readonly hasDiskSpace: () => Promise<boolean>;
  /**
   * Makes the deletion of the write-ahead log durable: every checkpoint deletes it. Otherwise a power cut could bring back an
   * old log. DuckDB ignores the log that the last checkpoint deleted, but refuses to open the file with one that an earlier
   * checkpoint deleted.
   */
  readonly syncDirectory: () => Promise<void>;
  /** Saves what a checkpoint overwrites, so that the next start can restore it after a power cut. */
  readonly saveMetadata: () => Promise<void>;
  readonly removeMetadataBackup: () => Promise<void>;
}

export class Checkpointer {
  readonly #dependencies: CheckpointDependencies;
  #pauses = 0;
  /** Whether the copy of DuckDB's metadata is current. It stays so if DuckDB rejects a checkpoint, because that changes nothing. */
  #isMetadataSaved = false;

  constructor(dependencies: CheckpointDependencies) {
    this.#dependencies = dependencies;
  }

  /** Whether a snapshot of the file is being read. */
  get isPaused(): boolean {
    return this.#pauses > 0;
  }

  /**
   * Until the returned function is called, no checkpoint runs. What the last checkpoint wrote to the file does not change meanwhile:
   * commits go to the write-ahead log, and the records of a large commit to file blocks that the last checkpoint does not use. The
   * returned function returns false if it was called before.
   */
  pause(): () => boolean {
    this.#pauses++;
    let isActive = true;
    return () => {
      if (!isActive) return false;
      isActive = false;
      this.#pauses--;
      return true;
    };
  }

  /** Must be called by the holder of the file mutex, after its commit. Returns whether everything is in the file now. */
  async run(): Promise<boolean> {
    return (await this.#tryCheckpoint()) === undefined;
  }

  /**
   * Retries until DuckDB accepts the checkpoint and no backup is running. `withFileMutex` runs a function while it holds the file
   * mutex. Throws after `timeoutMs`, or at once if the disk is nearly full.
   */
  async runWhenIdle(withFileMutex: Run, timeoutMs: number): Promise<void> {
    const deadline = performance.now() + timeoutMs;
    for (;;) {
      const obstacle = await withFileMutex(() => this.#tryCheckpoint());
      if (obstacle === undefined) return;
      if (obstacle === 'the disk is nearly full' || performance.now() > deadline)
        throw new Error(`the store cannot write a checkpoint now: ${obstacle}`);
      await sleep(IDLE_RETRY_MS);
    }
  }

  /** Returns undefined if the checkpoint was written, and otherwise why it cannot run now. */
  async #tryCheckpoint(): Promise<Obstacle | undefined> {
    const { connection, hasDiskSpace, saveMetadata, removeMetadataBackup, syncDirectory } =
      this.#dependencies;
    for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
      if (this.isPaused) return 'a backup is running';
      if (!(await hasDiskSpace())) return 'the disk is nearly full';
      try {
        if (!this.#isMetadataSaved) await saveMetadata();
        this.#isMetadataSaved = true;
        await connection.run('checkpoint logs');
        this.#isMetadataSaved = false;
        await removeMetadataBackup();
        await syncDirectory();
        return undefined;
      } catch (error) {
        if (isRejection(error)) {
          await sleep(ATTEMPT_DELAY_MS);
          continue;
        }
        this.#isMetadataSaved = false;
        if (isDiskFull(error)) return 'the disk is nearly full';
        throw error;
      }
    }
    return 'another transaction is running';
  }
}

/** DuckDB rejects a checkpoint while another transaction writes, such as a compaction, or still uses a table that was replaced. */
function isRejection(error: unknown): boolean {
  return /^TransactionContext Error: Cannot CHECKPOINT/.test((error as Error).message);
}
