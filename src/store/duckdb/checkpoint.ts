// Moves what was committed from the write-ahead log into the file. What is committed is durable without, so a checkpoint
// that cannot be done now is left to the next one.
import { setTimeout as sleep } from 'node:timers/promises';
import type { DuckDBConnection } from './driver.ts';

const ATTEMPTS = 5;
const PAUSE_MS = 20;

export interface CheckpointDependencies {
  readonly connection: DuckDBConnection;
  /** Whether the disk has room for all that the log holds: DuckDB gives up on a file whose checkpoint met a full disk. */
  readonly hasDiskSpace: () => Promise<boolean>;
  /** DuckDB gave up on the file: it has to be opened anew. */
  readonly onLost: (error: unknown) => void;
}

export class Checkpointer {
  readonly #dependencies: CheckpointDependencies;

  constructor(parts: CheckpointDependencies) {
    this.#dependencies = parts;
  }

  async run(): Promise<void> {
    const { connection, hasDiskSpace, onLost } = this.#dependencies;
    for (let attempt = 1; attempt <= ATTEMPTS && (await hasDiskSpace()); attempt++) {
      try {
        await connection.run('checkpoint logs');
        return;
      } catch (error) {
        const { message } = error as Error;
        if (/has been invalidated/.test(message)) onLost(error);
        // It refuses while certain transactions end.
        if (!/^TransactionContext Error: Cannot CHECKPOINT/.test(message)) throw error;
        await sleep(PAUSE_MS);
      }
    }
  }
}
