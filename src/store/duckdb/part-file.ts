// The file of a part on disk: its name, and what is damaged.
import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { LogKind } from '../../domain/log-columns.ts';
import { hashFile } from '../../system/open-file.ts';
import { PART_FILE, type PartEntry, type SetAsideEntry } from './manifest.ts';

export function partFileName(kind: LogKind, number: number): string {
  return `${kind}-${String(number).padStart(6, '0')}.duckdb`;
}

/** The name under which the part is attached to DuckDB. */
export function partAlias(file: string): string {
  const [, kind, number] = PART_FILE.exec(file) ?? [];
  return `${kind}_part_${Number(number)}`;
}

/** What is wrong with the file of a part. */
export interface PartProblem {
  readonly reason: SetAsideEntry['reason'];
  readonly problem: string;
}

/** Compares only the size. */
export function findSizeProblem(partsDirectory: string, { file, bytes }: PartEntry): PartProblem | undefined {
  const size = statSync(join(partsDirectory, file), { throwIfNoEntry: false })?.size;
  if (size === undefined) return { reason: 'missing', problem: 'the file does not exist' };
  if (size === bytes) return undefined;
  return { reason: 'damaged', problem: `the file has ${size} bytes, but ${bytes} were written` };
}

/** Reads the whole file. Returns undefined if it is as it was written. Throws if the file cannot be opened or read. */
export async function findPartProblem(
  partsDirectory: string,
  entry: PartEntry,
  onRead?: (bytes: number) => Promise<void> | void,
): Promise<PartProblem | undefined> {
  const sizeProblem = findSizeProblem(partsDirectory, entry);
  if (sizeProblem !== undefined) return sizeProblem;
  const found = await hashFile(join(partsDirectory, entry.file), onRead).catch(
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EIO') throw error;
      return { sha256: '' }; // the disk cannot read it
    },
  );
  if (found.sha256 === entry.sha256) return undefined;
  return { reason: 'damaged', problem: 'its content differs from what was written' };
}
