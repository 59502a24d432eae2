// Locks a data directory for one process, whichever store it uses: a PID file that also records when the process started, so
// that a stale lock does not block the next process. Does not detect a process in another container or on another machine.
import { rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { prepareDataDirectory } from './data-directory.ts';
import { isDiskFull } from './disk-full.ts';
import { withFileLock } from './file-lock.ts';
import { isRunning, type ProcessIdentity, readStart, readText } from './process-identity.ts';

/**
 * PID files that this process holds. The PID in a file does not show that: in a container, an earlier run often had the same PID.
 */
const heldFiles = new Set<string>();

/** Creates the directory if it is missing. Throws an OperatorError if another process holds it. */
export async function lockDirectory(dataDirectory: string): Promise<{ release(): void }> {
  const directory = resolve(dataDirectory);
  const pidFile = join(directory, 'dendro.pid');
  prepareDataDirectory(dataDirectory);
  const claim = () => {
    const owner = readOwner(pidFile);
    if (heldFiles.has(pidFile) || isRunning(owner))
      throw new OperatorError(
        `the data directory ${dataDirectory} is in use by another process (PID ${owner.pid}); stop it, or send requests to the running server with --url`,
      );
    try {
      writeFileSync(pidFile, `${process.pid} ${readStart(process.pid)}\n`, { mode: 0o600 });
    } catch (error) {
      // On a full disk the server can still serve queries, which is worth more than the lock in this rare case.
      if (!isDiskFull(error)) throw unusable(dataDirectory, error);
    }
    heldFiles.add(pidFile);
  };
  await withFileLock(pidFile, claim).catch(error => {
    // Without free inodes, the lock file of withFileLock() cannot be created. Then the PID file is claimed without it, and two
    // processes that start at the same time might both succeed.
    if (!isDiskFull(error.cause)) throw error;
    claim();
  });
  return {
    release() {
      if (heldFiles.delete(pidFile)) rmSync(pidFile, { force: true });
    },
  };
}

/** The PID of the running process that holds the directory; undefined if none does. */
export function findLockOwner(dataDirectory: string): number | undefined {
  const owner = readOwner(join(resolve(dataDirectory), 'dendro.pid'));
  return isRunning(owner) ? owner.pid : undefined;
}

function unusable(dataDirectory: string, error: unknown): OperatorError {
  return new OperatorError(`cannot use the data directory ${dataDirectory}: ${(error as Error).message}`);
}

function readOwner(pidFile: string): ProcessIdentity {
  const [, pid = '', start = ''] = /^(\d+) ?(.*)/.exec(readText(pidFile)) ?? [];
  return { pid: Number.parseInt(pid, 10), start };
}
