// The next sequence number of each log kind, in a file next to the segments of the spool. The file remains when segments are deleted
// or the operator switches stores. A store skips a sequence number that it has stored before, so using a number twice would lose a
// record.
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import { isDiskFull } from '../system/disk-full.ts';
import { writeFileDurably } from '../system/files.ts';

export type Sequences = ReadonlyMap<LogKind, number>;

/** The name is part of the on-disk format: after a rename, an older version would not find the file and would use numbers twice. */
export const SEQUENCES_FILE = 'next-numbers.json';

export async function readSequences(directory: string): Promise<Sequences> {
  const file = join(directory, SEQUENCES_FILE);
  return existsSync(file) ? parseSequences(file) : new Map();
}

/**
 * Ignores a full disk: `Spool.deleteVerified` calls this before it deletes segments, and that frees space. The numbers are not
 * lost: the store has them too. This file is needed only if the operator switches stores.
 */
export async function writeSequences(directory: string, sequences: Sequences): Promise<void> {
  try {
    await writeFileDurably(join(directory, SEQUENCES_FILE), formatSequences(sequences));
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

/**
 * `segmentEnds`: for each segment and kind, the sequence number after the last record. `kindsAhead`: the store has sequence numbers
 * of these kinds that are neither in the sequences file nor in the segments. `isIncomplete`: segments are missing. The spool itself
 * saves the sequence numbers before it deletes a segment (unless the disk is full), and never deletes the last segment.
 */
export function findNextSequences(
  savedSequences: Sequences,
  segmentEnds: readonly Sequences[],
  durableUpTo: (kind: LogKind) => number,
): { nextSequences: Map<LogKind, number>; kindsAhead: LogKind[]; isIncomplete: boolean } {
  const nextSequences = new Map<LogKind, number>();
  const kindsAhead: LogKind[] = [];
  for (const kind of LOG_KINDS) {
    const spoolEnd = Math.max(savedSequences.get(kind) ?? 0, ...segmentEnds.map(ends => ends.get(kind) ?? 0));
    const storeEnd = durableUpTo(kind);
    nextSequences.set(kind, Math.max(spoolEnd, storeEnd));
    if (storeEnd > spoolEnd) kindsAhead.push(kind);
  }
  const isIncomplete = kindsAhead.length > 0 || (segmentEnds.length === 0 && savedSequences.size > 0);
  return { nextSequences, kindsAhead, isIncomplete };
}

/** Notes the sequence number after the last record of a block. */
export function noteEnd(
  ends: Map<LogKind, number>,
  {
    kind,
    firstSequence,
    count,
  }: { readonly kind: LogKind; readonly firstSequence: number; readonly count: number },
): void {
  ends.set(kind, Math.max(ends.get(kind) ?? 0, firstSequence + count));
}

export function formatSequences(sequences: Sequences): string {
  return JSON.stringify(Object.fromEntries(sequences));
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
