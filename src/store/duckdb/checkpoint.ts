// Moves committed changes from the write-ahead log into the file. They are durable without it, so a checkpoint that cannot
// run now is left to the next one.
import { setTimeout as sleep } from 'node:timers/promises';
import type { DuckDBConnection } from './driver.ts';

const ATTEMPTS = 5;
const PAUSE_MS = 20;

export interface CheckpointDependencies {
  readonly connection: DuckDBConnection;
  /** DuckDB invalidates a file whose checkpoint runs out of disk space, so a checkpoint waits until there is enough. */
  readonly hasDiskSpace: () => Promise<boolean>;
  /** DuckDB invalidated the file: nothing works until it is opened again. */
  readonly onLost: (error: unknown) => void;
}

export class Checkpointer {
  readonly #dependencies: CheckpointDependencies;

  constructor(dependencies: CheckpointDependencies) {
    this.#dependencies = dependencies;
  }

  /** Must be called by the holder of the file mutex, after its commit. */
  async run(): Promise<void> {
    const { connection, hasDiskSpace, onLost } = this.#dependencies;
    for (let attempt = 1; attempt <= ATTEMPTS && (await hasDiskSpace()); attempt++) {
      try {
        await connection.run('checkpoint logs');
        return;
      } catch (error) {
        const { message } = error as Error;
        if (/has been invalidated/.test(message)) onLost(error);
        // DuckDB refuses a checkpoint at the moment in which certain transactions end.
        if (!/^TransactionContext Error: Cannot CHECKPOINT/.test(message)) throw error;
        await sleep(PAUSE_MS);
      }
    }
  }
}
