// Lets one process at a time change a file, with a lock beside it: FILE.lock.
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../domain/errors.ts';
import { writeFileDurably } from './files.ts';
import { acquire, type Lock } from './lock.ts';

const RETRY_MS = 20;
const GIVE_UP_AFTER_MS = 5_000;

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

/** Runs `work` while this process holds FILE.lock. Throws an OperatorError if it is not free within 5 s. */
export async function withFileLock<T>(file: string, work: (lock: Lock) => T | Promise<T>): Promise<T> {
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
  const held = lock;
  try {
    return await work(held);
  } finally {
    held.release();
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
