// Repairs the write-ahead log of an old store after a power cut.
import { existsSync, statSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { OperatorError } from '../../../domain/errors.ts';
import { writeFileDurably } from '../../../system/files.ts';
import { readAt, readChunks } from '../../../system/open-file.ts';

/** An unfinished write at the end of the write-ahead log. It was moved to `copy`. */
export interface TruncatedWal {
  readonly path: string;
  readonly invalidBytes: number;
  readonly copy: string;
}

export type OnWalTruncated = (log: TruncatedWal) => void;

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
  return { path, invalidBytes, copy };
}

/** An earlier copy is never replaced. */
function unusedCopyOf(path: string): string {
  const first = `${path}.damaged`;
  let copy = first;
  for (let number = 2; existsSync(copy); number++) copy = `${first}-${number}`;
  return copy;
}

export function pathOfWal(file: string): string {
  return `${file}.wal`;
}
