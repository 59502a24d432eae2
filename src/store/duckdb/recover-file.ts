// Prepares the store's file for DuckDB: creates it, or recovers it after a crash. After each step a crash leaves a file that the
// next start can use.
import { existsSync, renameSync, statSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { byteRange, type Damage } from '../../domain/damage.ts';
import { OperatorError } from '../../domain/errors.ts';
import { syncDirectory, writeFileDurably } from '../../system/files.ts';
import { readAt, readChunks } from '../../system/open-file.ts';
import type { DuckDBConnection } from './driver.ts';
import {
  isCheckpointUnfinished,
  metadataBackupOf,
  removeMetadataBackup,
  restoreMetadata,
} from './metadata-backup.ts';

/** Bytes of the write-ahead log that DuckDB cannot use. They were moved to `copy`. */
export interface TruncatedLog {
  readonly path: string;
  readonly reason: 'unfinished write' | 'no store file';
  readonly invalidBytes: number;
  readonly copy: string;
}

type OnLogTruncated = (log: TruncatedLog) => void;

/** The caller must hold the lock of the data directory. */
export async function prepareFile(
  connection: DuckDBConnection,
  file: string,
  onLogTruncated: OnLogTruncated,
): Promise<void> {
  if (!existsSync(file)) {
    await removeLeftovers(file, onLogTruncated);
    await createFile(connection, file);
  }
  await restoreMetadata(file);
  // The last process may have been killed before it synced. What this process reads has to survive a power cut from now on.
  for (const path of [file, logOf(file)]) if (existsSync(path)) await syncFile(path);
  await syncDirectory(dirname(file));
}

/** DuckDB would refuse a new file next to the log of another one, such as of a file that the operator has deleted. */
async function removeLeftovers(file: string, onLogTruncated: OnLogTruncated): Promise<void> {
  await removeMetadataBackup(file);
  const path = logOf(file);
  const invalidBytes = statSync(path, { throwIfNoEntry: false })?.size;
  if (invalidBytes !== undefined) {
    const copy = unusedCopyOf(path);
    renameSync(path, copy);
    onLogTruncated({ path, reason: 'no store file', invalidBytes, copy });
  }
  await syncDirectory(dirname(file));
}

/** DuckDB cannot open a file that it did not finish to create. So the file gets its name when it is complete. */
async function createFile(connection: DuckDBConnection, file: string): Promise<void> {
  const temporary = `${file}.new`;
  for (const leftover of [temporary, logOf(temporary)]) await rm(leftover, { force: true });
  await connection.run(`attach ${quote(temporary)} as created (storage_version 'latest')`);
  await connection.run('detach created');
  await syncFile(temporary);
  renameSync(temporary, file);
}

/**
 * Calls `attach`. DuckDB refuses a log with an invalid entry. A commit is durable before anything depends on it, so a power cut
 * leaves invalid entries only after the last commit. They are cut off, then `attach` is called again.
 */
export async function attachRecovering(
  file: string,
  attach: () => Promise<void>,
  onLogTruncated: OnLogTruncated,
): Promise<void> {
  try {
    await attach();
  } catch (error) {
    const unfinished = findUnfinishedWrite(file, error);
    if (unfinished === undefined) throw error;
    onLogTruncated(await truncateLog(logOf(file), unfinished));
    await attach();
  }
}

/** A range of the log. `end` is exclusive. */
interface UnfinishedWrite {
  readonly start: number;
  readonly end: number;
}

/** Size and checksum of an entry of the log. DuckDB reports the position after them. */
const ENTRY_HEADER_BYTES = 16;

/** Returns undefined if `error` has another cause. */
function findUnfinishedWrite(file: string, error: unknown): UnfinishedWrite | undefined {
  const position = /Corrupt WAL file: entry at byte position (\d+)/.exec((error as Error).message)?.[1];
  if (position === undefined) return undefined;
  const start = Number(position) - ENTRY_HEADER_BYTES;
  const end = statSync(logOf(file)).size;
  return start >= 0 && start < end ? { start, end } : undefined;
}

async function truncateLog(path: string, { start, end }: UnfinishedWrite): Promise<TruncatedLog> {
  const copy = unusedCopyOf(path);
  const invalidBytes = end - start;
  try {
    const handle = await open(path, 'r+');
    try {
      const read = (offset: number, length: number) => readAt(handle.fd, start + offset, length);
      await writeFileDurably(copy, readChunks(read, invalidBytes));
      await handle.truncate(start);
      await handle.sync();
    } finally {
      await handle.close();
    }
  } catch (error) {
    throw new OperatorError(
      `cannot move an unfinished write of ${invalidBytes} bytes from the end of ${path} to ${copy}: ${(error as Error).message}; free some disk space, or check the permissions of ${dirname(path)}, then start again`,
    );
  }
  return { path, reason: 'unfinished write', invalidBytes, copy };
}

/** An earlier copy is never replaced. */
function unusedCopyOf(path: string): string {
  const first = `${path}.damaged`;
  let copy = first;
  for (let number = 2; existsSync(copy); number++) copy = `${first}-${number}`;
  return copy;
}

/** Returns undefined if `error`, with which DuckDB refused the file, has another cause. */
export function describeUnfinishedWrite(file: string, error: unknown): Damage | undefined {
  const unfinished = findUnfinishedWrite(file, error);
  if (unfinished === undefined) return undefined;
  return {
    file: basename(logOf(file)),
    place: byteRange(unfinished.start, unfinished.end),
    problem: 'an unfinished write; the next start of the server cuts it off',
  };
}

/** Explains an error or damage of the file that the next start may repair. */
export async function describeUnfinishedCheckpoint(file: string): Promise<Damage | undefined> {
  if (!(await isCheckpointUnfinished(file))) return undefined;
  return {
    file: basename(file),
    place: '',
    problem: `an unfinished checkpoint; the next start of the server restores the metadata from ${basename(metadataBackupOf(file))}`,
  };
}

/** The error for a file that DuckDB cannot open. */
export function cannotOpen(file: string, dataDirectory: string, error: unknown): OperatorError {
  const [reason] = (error as Error).message.split('\n', 1);
  const damaged = /\bWAL\b/.test(`${reason}`) ? logOf(file) : file;
  return new OperatorError(
    `cannot open the store in ${dataDirectory}: ${reason}; keep a copy of ${damaged}, then restore the data directory from a backup`,
  );
}

export function logOf(file: string): string {
  return `${file}.wal`;
}

export function quote(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

async function syncFile(path: string): Promise<void> {
  const handle = await open(path, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}
