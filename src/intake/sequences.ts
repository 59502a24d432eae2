// The next sequence number of each kind, in a file next to the segments. It outlives the segments and a change of store: a
// store skips a sequence number that it has seen, so a number that is used twice would lose a record.
import { existsSync } from 'node:fs';
import { readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-record.ts';
import { writeFileDurably } from '../system/files.ts';

export type Sequences = ReadonlyMap<LogKind, number>;

const FILE = 'sequences.json';
/** The name of the file in version 0.1. */
const OLD_FILE = 'next-numbers.json';

/** Reads the file, and renames one that has the old name. */
export async function readSequences(directory: string): Promise<Sequences> {
  const file = join(directory, FILE);
  const oldFile = join(directory, OLD_FILE);
  if (existsSync(file)) {
    const sequences = await parseSequences(file);
    await rm(oldFile, { force: true }); // left by a crash or a full disk during the migration below
    return sequences;
  }
  if (!existsSync(oldFile)) return new Map();
  const sequences = await parseSequences(oldFile);
  // The old file is deleted only after the new one is durable, so that a crash never leaves neither.
  if (await writeSequences(directory, sequences)) await rm(oldFile);
  return sequences;
}

/**
 * Returns whether the file was written. A full disk is not an error: it must not prevent the deletion of segments, and
 * the store knows the sequence numbers too, as long as the store is not changed.
 */
export async function writeSequences(directory: string, sequences: Sequences): Promise<boolean> {
  try {
    await writeFileDurably(join(directory, FILE), JSON.stringify(Object.fromEntries(sequences)));
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
    return false;
  }
}

async function parseSequences(file: string): Promise<Sequences> {
  try {
    return new Map(Object.entries(JSON.parse(await readFile(file, 'utf8'))) as [LogKind, number][]);
  } catch (error) {
    throw new OperatorError(
      `cannot read ${file}: ${(error as Error).message}; restore it from a backup, or delete it if --store was never changed`,
    );
  }
}
