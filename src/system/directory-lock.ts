// Holds a data directory for one process, whichever store it opens: a file that names the process, and that one which ended
// does not hold for ever.
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { withFileLock } from './file-lock.ts';
import { createDirectory } from './files.ts';

interface Owner {
  readonly pid: number;
  /** Tells it from others that have its number before or after it; empty where that cannot be known. */
  readonly start: string;
}

/** Held by this process. In a container the process before often had the same number. */
const held = new Set<string>();

export async function lockDirectory(dataDirectory: string): Promise<{ release(): void }> {
  const folder = resolve(dataDirectory);
  const file = join(folder, 'dendro.pid');
  try {
    createDirectory(folder);
  } catch (error) {
    throw unusable(dataDirectory, error);
  }
  await withFileLock(file, () => {
    const owner = readOwner(file);
    if (held.has(file) || isRunning(owner))
      throw new OperatorError(
        `the data directory ${dataDirectory} is in use by another process (PID ${owner.pid}); stop it, or talk to the running server with --url`,
      );
    try {
      writeFileSync(file, `${process.pid} ${startOf(process.pid)}\n`, { mode: 0o600 });
    } catch (error) {
      // On a full disk queries can be answered, which is worth more than the lock of so rare a moment.
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw unusable(dataDirectory, error);
    }
    held.add(file);
  });
  return {
    release() {
      if (held.delete(file)) rmSync(file, { force: true });
    },
  };
}

function unusable(dataDirectory: string, error: unknown): OperatorError {
  return new OperatorError(`cannot use the data directory ${dataDirectory}: ${(error as Error).message}`);
}

function readOwner(file: string): Owner {
  const [, pid = '', start = ''] = /^(\d+) ?(.*)/.exec(readText(file)) ?? [];
  return { pid: Number.parseInt(pid, 10), start };
}

function isRunning({ pid, start }: Owner): boolean {
  const found = startOf(pid);
  if (start !== '' && found !== '') return start === found;
  return pid !== process.pid && isAlive(pid);
}

/** The boot, and the moment within it at which the process with this number began, where the system tells them. */
function startOf(pid: number): string {
  const boot = readText('/proc/sys/kernel/random/boot_id').trim();
  const stat = readText(`/proc/${pid}/stat`);
  if (boot === '' || stat === '') return '';
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' '); // the name in front may hold anything
  const hasEnded = fields[0] === 'Z'; // and nobody has asked for its exit code
  return hasEnded ? `${boot} ended` : `${boot} ${fields[19]}`;
}

/** Empty where there is none. */
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
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
