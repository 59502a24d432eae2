// Locks a data directory for one process, whichever store it uses: a PID file that also records when the process started, so
// that a stale lock does not block the next process.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { withFileLock } from './file-lock.ts';
import { createDirectory } from './files.ts';

interface Owner {
  readonly pid: number;
  /** Boot id and start time: they tell the owner from an earlier or later process with the same PID. Empty if unknown. */
  readonly start: string;
}

/** PID files that this process wrote. One with the same PID may be from an earlier run: in a container every run often has it. */
const heldFiles = new Set<string>();

/** Creates the directory if it is missing. Throws an OperatorError if another process holds it. */
export async function lockDirectory(dataDirectory: string): Promise<{ release(): void }> {
  const directory = resolve(dataDirectory);
  const pidFile = join(directory, 'dendro.pid');
  try {
    createDirectory(directory);
  } catch (error) {
    throw unusable(dataDirectory, error);
  }
  await withFileLock(pidFile, () => {
    const owner = readOwner(pidFile);
    if (heldFiles.has(pidFile) || isRunning(owner))
      throw new OperatorError(
        `the data directory ${dataDirectory} is in use by another process (PID ${owner.pid}); stop it, or send requests to the running server with --url`,
      );
    try {
      writeFileSync(pidFile, `${process.pid} ${readStart(process.pid)}\n`, { mode: 0o600 });
    } catch (error) {
      // On a full disk the server can still serve queries, which is worth more than the lock in this rare case.
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw unusable(dataDirectory, error);
    }
    heldFiles.add(pidFile);
  });
  return {
    release() {
      if (heldFiles.delete(pidFile)) rmSync(pidFile, { force: true });
    },
  };
}

function unusable(dataDirectory: string, error: unknown): OperatorError {
  return new OperatorError(`cannot use the data directory ${dataDirectory}: ${(error as Error).message}`);
}

function readOwner(pidFile: string): Owner {
  const [, pid = '', start = ''] = /^(\d+) ?(.*)/.exec(readText(pidFile)) ?? [];
  return { pid: Number.parseInt(pid, 10), start };
}

function isRunning({ pid, start }: Owner): boolean {
  const currentStart = readStart(pid);
  if (start !== '' && currentStart !== '') return start === currentStart;
  return pid !== process.pid && isAlive(pid);
}

/** The boot id and the process's start time within that boot; empty if the system has no /proc or no such process. */
function readStart(pid: number): string {
  const bootId = readText('/proc/sys/kernel/random/boot_id').trim();
  const stat = readText(`/proc/${pid}/stat`);
  if (bootId === '' || stat === '') return '';
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the process name before it may contain any character
  const isZombie = fields[0] === 'Z'; // it has exited, but its parent has not read the exit code
  return isZombie ? `${bootId} ended` : `${bootId} ${fields[19]}`;
}

/** Empty if the file cannot be read. */
function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
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
