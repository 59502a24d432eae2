// Lets one process at a time change a file: a lock file beside it. A stale lock, left by a process that died, is removed.
import { closeSync, openSync, rmSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../domain/errors.ts';
import { systemClock } from './clock.ts';

const RETRY_MS = 20;
const GIVE_UP_AFTER_MS = 5_000;
/** A change takes milliseconds, so the process that created a lock this old has died. */
const STALE_AFTER_MS = 10_000;

/** Runs `change` while this process holds the lock. Throws an OperatorError if the lock is not free within 5 s. */
export async function withFileLock<T>(file: string, change: () => T): Promise<T> {
  const lockFile = `${file}.lock`;
  const startedAt = performance.now();
  while (!tryLock(lockFile)) {
    if (performance.now() - startedAt > GIVE_UP_AFTER_MS)
      throw new OperatorError(
        `${lockFile}: another process holds this lock; if no other dendro command is running, delete the file`,
      );
    await sleep(RETRY_MS);
  }
  try {
    return change();
  } finally {
    rmSync(lockFile, { force: true });
  }
}

function tryLock(lockFile: string): boolean {
  try {
    closeSync(openSync(lockFile, 'wx', 0o600));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST')
      throw new OperatorError(`cannot create the lock file ${lockFile}: ${(error as Error).message}`);
  }
  if (isStale(lockFile)) removeStaleLock(lockFile);
  return false;
}

/**
 * A second lock file lets one process at a time check the age again and remove the lock. Without it, two processes could both find
 * the lock stale, and the slower one could remove the lock that the faster one has just created.
 */
function removeStaleLock(lockFile: string): void {
  const takeoverFile = `${lockFile}.takeover`;
  try {
    closeSync(openSync(takeoverFile, 'wx', 0o600));
  } catch {
    return; // another process is removing it
  }
  try {
    if (isStale(lockFile)) rmSync(lockFile, { force: true });
  } finally {
    rmSync(takeoverFile, { force: true });
  }
}

function isStale(lockFile: string): boolean {
  const stats = statSync(lockFile, { throwIfNoEntry: false });
  return stats !== undefined && Number(systemClock() / 1000n) - stats.mtimeMs > STALE_AFTER_MS;
}
