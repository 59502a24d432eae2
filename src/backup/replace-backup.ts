// Replaces the directory DIR of a backup by a new backup. The new one is written to DIR.incomplete. When it is complete, DIR is
// renamed to DIR.previous, DIR.incomplete to DIR, and the previous backup is deleted. So one of DIR and DIR.previous is always a
// complete backup.
import { existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { QUARANTINE_FILES } from '../intake/quarantine.ts';
import { createDirectory, syncDirectory } from '../system/files.ts';
import { withFileLock } from '../system/lock.ts';
import { REPORT_FILE } from './take-backup.ts';

/** What the directory of a backup can have. */
const BACKUP_ENTRIES: readonly string[] = [
  ...[
    'manifest.json',
    'format.json',
    'erase.json',
    'tokens.json',
    'parts',
    'spool',
    'clickhouse',
    'alerts',
    REPORT_FILE,
  ],
  ...QUARANTINE_FILES,
];

/**
 * `write` writes the new backup to the directory that it gets. If it throws, the existing backup stays. `onRestored` is called if an
 * interrupted run has left only the previous backup, which then gets its name back. `directory` is an absolute path.
 */
export async function replaceBackup<T>(
  directory: string,
  write: (incomplete: string) => Promise<T>,
  onRestored: (previous: string) => void,
): Promise<T> {
  const incomplete = `${directory}.incomplete`;
  prepareParent(directory);
  return withFileLock(directory, async () => {
    if (restorePrevious(directory)) onRestored(`${directory}.previous`);
    requireReplaceable(directory);
    rmSync(incomplete, { recursive: true, force: true });
    mkdirSync(incomplete, { mode: 0o700 });
    try {
      const result = await write(incomplete);
      requireReplaceable(directory);
      swap(incomplete, directory);
      await syncDirectory(dirname(directory));
      return result;
    } finally {
      rmSync(incomplete, { recursive: true, force: true });
    }
  });
}

function prepareParent(directory: string): void {
  try {
    createDirectory(dirname(directory));
  } catch (error) {
    throw new OperatorError(`cannot create ${dirname(directory)}: ${(error as Error).message}`);
  }
}

/** Returns whether the previous backup got its name back. */
function restorePrevious(directory: string): boolean {
  const previous = `${directory}.previous`;
  if (!existsSync(previous)) return false;
  if (existsSync(directory))
    throw new OperatorError(`${previous} exists, but a backup needs this name; delete or rename it`);
  renameSync(previous, directory);
  return true;
}

/** A directory that does not exist, is empty, or is a backup that no server has used: a server creates further entries in it. */
function requireReplaceable(directory: string): void {
  const isDirectory = statSync(directory, { throwIfNoEntry: false })?.isDirectory();
  if (isDirectory === undefined) return;
  const entries = isDirectory ? readdirSync(directory) : [];
  if (isDirectory && entries.length === 0) return;
  if (!entries.includes(REPORT_FILE))
    throw new OperatorError(
      `${directory} is neither an empty directory nor a backup; name a backup, or a directory that is empty or does not exist`,
    );
  const other = entries.find(entry => !BACKUP_ENTRIES.includes(entry));
  if (other !== undefined)
    throw new OperatorError(
      `${directory} has ${other}, which is not part of a backup; if a server has used the directory, name another one`,
    );
}

/** Afterwards `incomplete` is the backup that was replaced, if there was one. */
function swap(incomplete: string, directory: string): void {
  const previous = `${directory}.previous`;
  try {
    if (existsSync(directory)) renameSync(directory, previous);
    renameSync(incomplete, directory);
    if (existsSync(previous)) renameSync(previous, incomplete);
  } catch (error) {
    restorePrevious(directory);
    throw new OperatorError(
      `cannot move the copy to ${directory}: ${(error as Error).message}; if it is a mount point, name a directory below it`,
    );
  }
}
