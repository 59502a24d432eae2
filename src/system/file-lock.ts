// Lets one process at a time change a file: a lock file beside it, which a process that died cannot hold for ever.
import { closeSync, openSync, rmSync, statSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../domain/errors.ts';
import { systemClock } from './clock.ts';

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
  if (isStale(lock)) takeOver(lock);
  return false;
}

/**
 * Removes a lock that was left behind, one process at a time and looking again: otherwise who found it stale a moment
 * ago could remove the fresh lock of another who was quicker.
 */
function takeOver(lock: string): void {
  const turn = `${lock}.takeover`;
  try {
    closeSync(openSync(turn, 'wx', 0o600));
  } catch {
    return; // another is at it
  }
  try {
    if (isStale(lock)) rmSync(lock, { force: true });
  } finally {
    rmSync(turn, { force: true });
  }
}

function isStale(lock: string): boolean {
  const age = ageOf(lock);
  return age !== undefined && age > STALE_AFTER_MS;
}

function ageOf(file: string): number | undefined {
  const stats = statSync(file, { throwIfNoEntry: false });
  return stats === undefined ? undefined : Number(systemClock() / 1000n) - stats.mtimeMs;
}
