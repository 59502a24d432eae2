// Lets one process at a time change a file: a lock file beside it, which names its owner. A lock whose owner is known to have ended
// is removed at once, so a crash blocks nobody. If the owner cannot be looked up, the lock is removed after 2 s. A lock whose
// owner is known to run stays, except in a rare race of three processes (`removeStale`).
import { randomUUID } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  linkSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../domain/errors.ts';
import { describeFileError } from './file-access.ts';
import { writeFileDurably } from './files.ts';
import { isRunning, readPidNamespace, readStart, readText } from './process-identity.ts';

const RETRY_MS = 20;
const GIVE_UP_AFTER_MS = 5_000;
/**
 * For a lock whose owner cannot be looked up, such as in another container. A change takes milliseconds. If the owner still runs,
 * its `changeLockedFile` finds before the rename that the lock is lost (`isHeld`), and starts again.
 */
const UNKNOWN_OWNER_TIMEOUT_MS = 2_000;

export interface FileLock {
  /** False if another process has removed the lock, because it could not look up this process or in a race (`removeStale`). */
  isHeld(): boolean;
}

interface Owner {
  readonly pid: number;
  readonly start: string;
  readonly namespace: string;
  /** Random. Distinguishes this lock from earlier and later locks of the same process. */
  readonly id: string;
}

/**
 * Lock files that this process holds. Needed on a system without /proc: there, `isRunning` returns false for this process's own
 * PID, as if an earlier process with the same PID had left the lock.
 */
const ownLockFiles = new Set<string>();

/**
 * Reads, changes and replaces a file, so that no concurrent change is lost. If the lock was lost or the file has changed in the
 * meantime, this starts again and calls `change` with the new content. The content is undefined if there is no file. The file keeps
 * its owner and mode.
 */
export async function changeLockedFile(
  file: string,
  change: (content: string | undefined) => string,
): Promise<void> {
  const conflict = new Error('another process has taken the lock or changed the file');
  const attempt = () =>
    withFileLock(file, async lock => {
      const before = readContent(file);
      await writeFileDurably(file, change(before), {
        temporary: `${file}.${randomUUID()}.new`, // unique: a process that has lost its lock may still write its temporary file
        keepOwner: true,
        beforeRename() {
          if (!lock.isHeld() || readContent(file) !== before) throw conflict;
        },
      });
    });
  for (;;) {
    try {
      return await attempt();
    } catch (error) {
      if (error !== conflict) throw error;
    }
  }
}

/**
 * Runs `work` while this process holds the lock. Throws an OperatorError if the lock is not free within 5 s, or if the lock file
 * cannot be created; then the error of the file system is its cause.
 */
export async function withFileLock<T>(file: string, work: (lock: FileLock) => T | Promise<T>): Promise<T> {
  const lockFile = `${file}.lock`;
  const descriptor = await acquire(lockFile);
  ownLockFiles.add(lockFile);
  // The open descriptor keeps the number of the inode from being used again.
  const isHeld = () => statSync(lockFile, { throwIfNoEntry: false })?.ino === fstatSync(descriptor).ino;
  try {
    return await work({ isHeld });
  } finally {
    ownLockFiles.delete(lockFile);
    if (isHeld()) rmSync(lockFile, { force: true });
    closeSync(descriptor);
  }
}

/** Returns the descriptor of the new lock file. */
async function acquire(lockFile: string): Promise<number> {
  const startedAt = performance.now();
  let seen = { text: '', at: startedAt };
  for (;;) {
    const descriptor = tryCreate(lockFile);
    if (descriptor !== undefined) return descriptor;
    const [text, now] = [readText(lockFile), performance.now()];
    if (text !== seen.text) seen = { text, at: now };
    const owner = parseOwner(text);
    if (!ownLockFiles.has(lockFile) && isStale(owner, now - seen.at)) removeStale(lockFile, text);
    else if (now - startedAt > GIVE_UP_AFTER_MS)
      throw new OperatorError(
        `${lockFile}: another process holds this lock (PID ${owner?.pid ?? 'unknown'}); retry when it has finished, or stop it`,
      );
    else await sleep(RETRY_MS);
  }
}

/** Returns undefined if the lock file exists. */
function tryCreate(lockFile: string): number | undefined {
  let descriptor: number;
  try {
    descriptor = openSync(lockFile, 'wx', 0o600);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return undefined;
    throw new OperatorError(
      `cannot create the lock file ${lockFile}: ${describeFileError(dirname(lockFile), error as NodeJS.ErrnoException)}`,
      { cause: error },
    );
  }
  const { pid } = process;
  const owner: Owner = { pid, start: readStart(pid), namespace: readPidNamespace(), id: randomUUID() };
  try {
    writeFileSync(descriptor, `${JSON.stringify(owner)}\n`);
  } catch {
    // On a full disk the lock still works, but without its owner.
  }
  return descriptor;
}

function isStale(owner: Owner | undefined, unchangedMs: number): boolean {
  if (owner === undefined || owner.namespace !== readPidNamespace())
    return unchangedMs > UNKNOWN_OWNER_TIMEOUT_MS;
  return !isRunning(owner);
}

/** Several processes may find the same stale lock. So this moves the lock away first and puts it back if it is a newer one. */
function removeStale(lockFile: string, text: string): void {
  const removed = `${lockFile}.${randomUUID()}`;
  try {
    renameSync(lockFile, removed);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return; // another process has removed it
    throw new OperatorError(`cannot remove the stale lock file ${lockFile}: ${(error as Error).message}`);
  }
  try {
    if (readText(removed) !== text) linkSync(removed, lockFile);
  } catch {
    // A third process has created the lock file meanwhile. The owner of the lock that was moved away notices its loss (`isHeld`).
  } finally {
    rmSync(removed, { force: true });
  }
}

/** Undefined if the file was written by an earlier version, or is not complete. */
function parseOwner(text: string): Owner | undefined {
  try {
    const owner: Partial<Owner> | null = JSON.parse(text);
    return typeof owner?.pid === 'number' ? (owner as Owner) : undefined;
  } catch {
    return undefined;
  }
}

function readContent(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw error;
  }
}
