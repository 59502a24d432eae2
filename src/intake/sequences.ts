// The next sequence number of each kind, in a file next to the segments. It outlives the segments and a change of store: a
// store skips a sequence number that it has seen, so a number that is used twice would lose a record.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { writeFileDurably } from '../system/files.ts';

export type Sequences = ReadonlyMap<LogKind, number>;

/** The name is part of the on-disk format: an older version that missed the file would use numbers twice. */
const FILE = 'next-numbers.json';

export async function readSequences(directory: string): Promise<Sequences> {
  const file = join(directory, FILE);
  return existsSync(file) ? parseSequences(file) : new Map();
}

/**
 * A full disk is not an error: it must not prevent the deletion of segments, and the store knows the sequence numbers too,
 * as long as the store is not changed.
 */
export async function writeSequences(directory: string, sequences: Sequences): Promise<void> {
  try {
    await writeFileDurably(join(directory, FILE), JSON.stringify(Object.fromEntries(sequences)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
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
