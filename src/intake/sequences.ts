// The number of the next record of each kind, beside the segments. It outlasts them, and whichever store took them: were it
// given twice, a store that took the first record would pass over the second.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import type { LogKind } from '../domain/log-columns.ts';
import { writeFileDurably } from '../system/files.ts';

type Sequences = ReadonlyMap<LogKind, number>;

export async function readSequences(folder: string): Promise<Sequences> {
  const file = fileIn(folder);
  if (!existsSync(file)) return new Map();
  try {
    return new Map(Object.entries(JSON.parse(await readFile(file, 'utf8'))) as [LogKind, number][]);
  } catch (error) {
    throw new OperatorError(
      `${file} cannot be read; where --store was never changed it may be deleted: ${(error as Error).message}`,
    );
  }
}

/** Not on a full disk, from which nothing could go otherwise: the store knows the numbers, too, as long as it stays the same. */
export async function writeSequences(folder: string, next: Sequences): Promise<void> {
  try {
    await writeFileDurably(fileIn(folder), JSON.stringify(Object.fromEntries(next)));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
  }
}

function fileIn(folder: string): string {
  return join(folder, 'next-numbers.json');
}
