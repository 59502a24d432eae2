// Locks, by a file that names the process that holds it: by its PID and start time, so that the file of a process that has ended
// blocks nobody. Does not detect a process in another container or on another machine.
import { randomUUID } from 'node:crypto';
import { constants, copyFileSync, linkSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../domain/errors.ts';
import { prepareDataDirectory } from './data-directory.ts';
import { isDiskFull } from './disk-full.ts';
import { describeFileError } from './file-access.ts';

export interface Lock {
  release(): void;
}

/** The files that this process holds. Their content does not show that: in a container, an earlier run often had the same PID. */
const heldFiles = new Set<string>();

/** Creates the directory if it is missing. Throws an OperatorError if another process holds it. */
export async function lockDirectory(dataDirectory: string): Promise<Lock> {
  prepareDataDirectory(dataDirectory);
  const lock = acquire(pidFileIn(dataDirectory));
  if (typeof lock !== 'number') return lock;
  throw new OperatorError(
    `the data directory ${dataDirectory} is in use by another process (PID ${lock}); stop it, or send requests to the running server with --url`,
  );
}

/** The PID of the running process that holds the directory; undefined if none does. */
export function findLockOwner(dataDirectory: string): number | undefined {
  return findOwner(readText(pidFileIn(dataDirectory)) ?? '');
}

function pidFileIn(dataDirectory: string): string {
  return join(resolve(dataDirectory), 'dendro.pid');
}

const RETRY_MS = 20;
const GIVE_UP_AFTER_MS = 5_000;

/** Runs `work` while this process holds FILE.lock. Throws an OperatorError if it is not free within 5 s. */
export async function withFileLock<T>(file: string, work: () => T | Promise<T>): Promise<T> {
  const lockFile = resolve(`${file}.lock`);
  const startedAt = performance.now();
  let lock = acquire(lockFile);
  for (; typeof lock === 'number'; lock = acquire(lockFile)) {
    if (performance.now() - startedAt > GIVE_UP_AFTER_MS)
      throw new OperatorError(
        `${lockFile}: another process holds this lock (PID ${lock}); retry when it has finished, or stop it`,
      );
    await sleep(RETRY_MS);
  }
  const { release } = lock;
  return (async () => work())().finally(release);
}

/** Returns the PID of the process that holds the lock instead, if one does. */
function acquire(file: string): Lock | number {
  const own = `${process.pid} ${readStart(process.pid)}\n`;
  for (;;) {
    if (heldFiles.has(file)) return process.pid;
    const found = create(file, own);
    if (found === undefined) break;
    const owner = found === own ? undefined : findOwner(found); // own: left by a failed removal
    if (owner !== undefined) return owner;
    // Several processes may find the same stale lock. One at a time may remove it, so that none removes the new lock of another.
    const removal = acquire(`${file}.stale`);
    if (typeof removal === 'number') return removal;
    try {
      if (readText(file) === found) rmSync(file, { force: true });
    } finally {
      removal.release();
    }
  }
  heldFiles.add(file);
  return {
    release() {
      if (heldFiles.delete(file) && readText(file) === own) rmSync(file, { force: true });
    },
  };
}

/** Returns the content of the file if it exists. Links a complete file, so that no other process reads an unfinished one. */
function create(file: string, content: string): string | undefined {
  const temporary = `${file}.${randomUUID()}`;
  try {
    writeFileSync(temporary, content, { mode: 0o600 });
    try {
      linkSync(temporary, file);
    } catch (error) {
      if (!['EPERM', 'ENOTSUP', 'ENOSYS'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
      copyFileSync(temporary, file, constants.COPYFILE_EXCL); // a file system without hard links
    }
    return undefined;
  } catch (error) {
    // If the file was removed meanwhile, tries again.
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return readText(file) ?? create(file, content);
    // On a full disk the server can still serve queries, which is worth more than the lock in this rare case.
    if (isDiskFull(error)) return readText(file) || undefined;
    const reason = describeFileError(dirname(file), error as NodeJS.ErrnoException);
    throw new OperatorError(`cannot create the lock file ${file}: ${reason}`, { cause: error });
  } finally {
    removeIfPossible(temporary);
  }
}

/** The lock holds or not, whether or not its temporary file can be removed. */
function removeIfPossible(file: string): void {
  try {
    rmSync(file, { force: true });
  } catch {}
}

/** The PID in the content of a lock file, if that process still runs. */
function findOwner(content: string): number | undefined {
  const [, pid = '', start = ''] = /^(\d+) ?(.*)/.exec(content) ?? [];
  const owner = Number(pid);
  const current = readStart(owner);
  if (start !== '' && current !== '') return start === current ? owner : undefined;
  // A process knows its own locks (`heldFiles`), so this one was left by an earlier process with the same PID.
  return owner !== process.pid && isAlive(owner) ? owner : undefined;
}

/** The boot id and the process's start time within that boot; empty if the system has no /proc, or no such process runs. */
function readStart(pid: number): string {
  const bootId = readText('/proc/sys/kernel/random/boot_id')?.trim() ?? '';
  const stat = readText(`/proc/${pid}/stat`) ?? '';
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the process name before it may contain any character
  const startTime = fields[19]; // field 22 of /proc/PID/stat; `fields` begins with field 3
  if (bootId === '' || startTime === undefined) return '';
  return fields[0] === 'Z' ? `${bootId} ended` : `${bootId} ${startTime}`; // a zombie has exited
}

function isAlive(pid: number): boolean {
  if (!(pid > 0)) return false;
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'; // it exists, but belongs to another user
  }
}

/** Undefined if there is no such file, which differs from an empty lock file: that one must be removed. Empty if it cannot be read. */
function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'ENOENT' ? undefined : '';
  }
}
