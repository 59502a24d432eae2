// Moves what was committed from the write-ahead log into the file.
import { setTimeout as sleep } from 'node:timers/promises';
import type { DuckDBConnection } from './driver.ts';

const ATTEMPTS = 5;
const PAUSE_MS = 20;

/** DuckDB refuses while certain transactions end. What is committed is durable without, so the next one may do it. */
export async function checkpoint(connection: DuckDBConnection): Promise<void> {
  for (let attempt = 1; attempt <= ATTEMPTS; attempt++) {
    try {
      await connection.run('checkpoint logs');
      return;
    } catch (error) {
      if (!/^TransactionContext Error: Cannot CHECKPOINT/.test((error as Error).message)) throw error;
      await sleep(PAUSE_MS);
    }
  }
}
