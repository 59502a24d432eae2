// Prepares the store's file for DuckDB: creates it, or recovers it after a crash. After each step a crash leaves a file that the
// next start can use.
import { existsSync, renameSync, statSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { basename, dirname } from 'node:path';
import { byteRange, type Damage } from '../../../domain/damage.ts';
import { OperatorError } from '../../../domain/errors.ts';
import { syncDirectory, writeFileDurably } from '../../../system/files.ts';
import { readAt, readChunks } from '../../../system/open-file.ts';
import type { DuckDBConnection } from '../driver.ts';
import {
  isCheckpointUnfinished,
  metadataBackupOf,
  removeMetadataBackup,
  restoreMetadata,
} from './metadata-backup.ts';

/** Bytes of the write-ahead log that DuckDB cannot use. They were moved to `copy`. */
export interface TruncatedWal {
  readonly path: string;
  readonly reason: 'unfinished write' | 'no store file';
  readonly invalidBytes: number;
  readonly copy: string;
}

type OnWalTruncated = (log: TruncatedWal) => void;

/** The caller must hold the lock of the data directory. */
export async function prepareFile(
  connection: DuckDBConnection,
  file: string,
  onWalTruncated: OnWalTruncated,
): Promise<void> {
  if (!existsSync(file)) {
    await removeLeftovers(file, onWalTruncated);
    await createFile(connection, file);
  }
  await restoreMetadata(file);
  // The last process may have been killed before it synced. What this process reads has to survive a power cut from now on.
  for (const path of [file, pathOfWal(file)]) if (existsSync(path)) await syncFile(path);
  await syncDirectory(dirname(file));
}

/**
 * DuckDB refuses to create a file next to the write-ahead log of an earlier file, such as after the operator has deleted the
 * store's file. So the log is renamed. It is not deleted.
 */
async function removeLeftovers(file: string, onWalTruncated: OnWalTruncated): Promise<void> {
  await removeMetadataBackup(file);
  const path = pathOfWal(file);
  const invalidBytes = statSync(path, { throwIfNoEntry: false })?.size;
  if (invalidBytes !== undefined) {
    const copy = unusedCopyOf(path);
    renameSync(path, copy);
    onWalTruncated({ path, reason: 'no store file', invalidBytes, copy });
  }
  await syncDirectory(dirname(file));
}

/** DuckDB cannot open a file whose creation was interrupted. So the file gets its final name only when it is complete. */
async function createFile(connection: DuckDBConnection, file: string): Promise<void> {
  const temporary = `${file}.new`;
  for (const leftover of [temporary, pathOfWal(temporary)]) await rm(leftover, { force: true });
  await connection.run(`attach ${quote(temporary)} as created (storage_version 'latest')`);
  await connection.run('detach created');
  await syncFile(temporary);
  renameSync(temporary, file);
}

/**
 * Calls `attach`. DuckDB refuses a write-ahead log with an invalid entry. Each commit is synced before the program relies on it,
 * so after a power cut only entries after the last synced commit can be invalid. The log is cut off at the first invalid entry,
 * then `attach` is called again.
 */
export async function attachRecovering(
  file: string,
  attach: () => Promise<void>,
  onWalTruncated: OnWalTruncated,
): Promise<void> {
  try {
    await attach();
  } catch (error) {
    const unfinished = findUnfinishedWrite(file, error);
    if (unfinished === undefined) throw error;
    onWalTruncated(await truncateWal(pathOfWal(file), unfinished));
    await attach();
  }
}

/** A range of the write-ahead log, in bytes. `end` is exclusive. */
interface UnfinishedWrite {
  readonly start: number;
  readonly end: number;
}

/** Size and checksum of an entry of the write-ahead log. DuckDB reports the position after them. */
const ENTRY_HEADER_BYTES = 16;

/** Returns undefined if an unfinished write is not the cause of `error`. */
function findUnfinishedWrite(file: string, error: unknown): UnfinishedWrite | undefined {
  const position = /Corrupt WAL file: entry at byte position (\d+)/.exec((error as Error).message)?.[1];
  if (position === undefined) return undefined;
  const start = Number(position) - ENTRY_HEADER_BYTES;
  const end = statSync(pathOfWal(file)).size;
  return start >= 0 && start < end ? { start, end } : undefined;
}

async function truncateWal(path: string, { start, end }: UnfinishedWrite): Promise<TruncatedWal> {
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

/** `error` is the one with which DuckDB refused the file. Returns undefined if an unfinished write is not its cause. */
export function describeUnfinishedWrite(file: string, error: unknown): Damage | undefined {
  const unfinished = findUnfinishedWrite(file, error);
  if (unfinished === undefined) return undefined;
  return {
    file: basename(pathOfWal(file)),
    place: byteRange(unfinished.start, unfinished.end),
    problem: 'an unfinished write; the next start of the server cuts it off',
  };
}

/** For a file that DuckDB reports as damaged. Returns undefined if an unfinished checkpoint is not the cause. */
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
  const damaged = /\bWAL\b/.test(`${reason}`) ? pathOfWal(file) : file;
  return new OperatorError(
    `cannot open the store in ${dataDirectory}: ${reason}; keep a copy of ${damaged}, then restore the data directory from a backup`,
  );
}

export function pathOfWal(file: string): string {
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
