// Lets one process at a time change a file: a lock file beside it, which a process that died cannot hold for ever.
import { closeSync, openSync, rmSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { systemClock } from '../clock.ts';
import { OperatorError } from '../errors.ts';

const RETRY_MS = 20;
const GIVE_UP_AFTER_MS = 5_000;
/** A change takes milliseconds: a lock this old was left behind. */
const STALE_AFTER_MS = 10_000;

export async function withFileLock<T>(file: string, change: () => T): Promise<T> {
  const lock = `${file}.lock`;
  const startedAt = performance.now();
  while (!tryLock(lock)) {
    if (performance.now() - startedAt > GIVE_UP_AFTER_MS)
      throw new OperatorError(`${lock}: another command holds it; if none runs, delete it`);
    await sleep(RETRY_MS);
  }
  try {
    return change();
  } finally {
    rmSync(lock, { force: true });
  }
}

function tryLock(lock: string): boolean {
  try {
    closeSync(openSync(lock, 'wx', 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new OperatorError(`cannot lock ${lock}: ${(error as Error).message}`);
  }
  const age = ageOf(lock);
  if (age !== undefined && age > STALE_AFTER_MS) rmSync(lock, { force: true });
  return false;
}

function ageOf(file: string): number | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? undefined : Number(systemClock() / 1000n) - stats.mtimeMs;
}
