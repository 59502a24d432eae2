// Prepares the store's file for DuckDB: creates it, or recovers it after a crash. After each step a crash leaves a file that the
// next start can use.
import { existsSync, renameSync } from 'node:fs';
import { open, readFile, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OperatorError } from '../../domain/errors.ts';
import { syncDirectory, writeFileDurably } from '../../system/files.ts';
import type { DuckDBConnection } from './driver.ts';
import { restoreMetadata } from './metadata-backup.ts';

/** The end of the write-ahead log was cut off. `copy` has the whole log. */
export interface TruncatedLog {
  readonly path: string;
  readonly invalidBytes: number;
  readonly copy: string;
}

/** The caller must hold the lock of the data directory. */
export async function prepareFile(connection: DuckDBConnection, file: string): Promise<void> {
  if (!existsSync(file)) await createFile(connection, file);
  await restoreMetadata(file);
  // The last process may have been killed before it synced. What this process reads has to survive a power cut from now on.
  for (const path of [file, logOf(file)]) if (existsSync(path)) await syncFile(path);
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
 * DuckDB refuses a log with an invalid entry. A commit is durable before anything depends on it, so a power cut leaves invalid
 * entries only after the last commit. Returns undefined if `error` has another cause.
 */
export async function truncateLog(file: string, error: unknown): Promise<TruncatedLog | undefined> {
  const position = /Corrupt WAL file: entry at byte position (\d+)/.exec((error as Error).message)?.[1];
  if (position === undefined) return undefined;
  const path = logOf(file);
  const copy = `${path}.damaged`;
  const log = await readFile(path);
  const validBytes = Number(position) - ENTRY_HEADER_BYTES;
  if (!(validBytes >= 0 && validBytes < log.length)) return undefined;
  await writeFileDurably(copy, log);
  const handle = await open(path, 'r+');
  try {
    await handle.truncate(validBytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return { path, invalidBytes: log.length - validBytes, copy };
}

/** Size and checksum of an entry of the log. DuckDB reports the position after them. */
const ENTRY_HEADER_BYTES = 16;

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
