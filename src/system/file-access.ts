// File permissions: checks them, and describes a denied access with the current user and the owner of the file, so that the
// operator knows what to change.
import { existsSync, mkdtempSync, readFileSync, rmdirSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isDiskFull, isQuotaExceeded, QUOTA_EXCEEDED } from './disk-full.ts';

/**
 * Describes an error of a file operation in one line, without the name of the system call. If access is denied, it adds the
 * current user, and the owner and the mode of `path`: the file, or the directory in which a file was to be created.
 */
export function describeFileError(path: string, error: NodeJS.ErrnoException): string {
  if (isQuotaExceeded(error)) return QUOTA_EXCEEDED;
  const [reason = ''] = error.message.split(', ', 1);
  if (!isAccessDenied(error)) return reason;
  const denied = `${reason} for ${describeUser(process.geteuid?.() ?? 0)}`;
  const stats = readStats(path);
  if (stats === undefined) return `${denied}, who cannot enter its directory or write to it`;
  const mode = (stats.mode & 0o7777).toString(8).padStart(4, '0');
  return `${denied}; ${path} belongs to ${describeUser(stats.uid)} and has mode ${mode}: run this as its owner or as root`;
}

export function isAccessDenied({ code }: NodeJS.ErrnoException): boolean {
  return code === 'EACCES' || code === 'EPERM';
}

/**
 * Throws the error of the system if this user cannot create files in a directory. If the directory does not exist, checks that it
 * can be created. Leaves nothing behind. Tries it, because root may write to /proc by its mode, but cannot. A full disk is no error.
 */
export function checkWritable(directory: string): void {
  const parent = dirname(directory);
  try {
    if (!existsSync(directory) && parent !== directory) checkWritable(parent);
    else rmdirSync(mkdtempSync(join(directory, 'write-test.')));
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

/** Undefined if it does not exist or this user cannot see it. */
export function findOwner(path: string): number | undefined {
  return readStats(path)?.uid;
}

export function describeUser(uid: number): string {
  const entry = new RegExp(`^([^:]+):[^:]*:${uid}:`, 'm').exec(readUsers());
  return entry === null ? `uid ${uid}` : `user ${entry[1]} (uid ${uid})`;
}

function readStats(path: string): { readonly uid: number; readonly mode: number } | undefined {
  try {
    return statSync(path);
  } catch {
    return undefined;
  }
}

function readUsers(): string {
  try {
    return readFileSync('/etc/passwd', 'utf8');
  } catch {
    return '';
  }
}
