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
 * Ignores a full disk: `Spool.deleteFlushed` calls this before it deletes segments, and the deletion frees space. The numbers
 * are not lost: the store has them too. This file is needed only if the operator switches stores.
 */
export async function writeSequences(directory: string, sequences: Sequences): Promise<void> {
  try {
    await writeFileDurably(join(directory, SEQUENCES_FILE), formatSequences(sequences));
  } catch (error) {
    if (!isDiskFull(error)) throw error;
  }
}

/**
 * Finds the next sequence number of each kind. `segmentEnds` has one map for each segment: the sequence number after the last
 * record of each kind.
 *
 * Also finds signs of lost files. `kindsAhead`: the store has higher sequence numbers of these kinds than the sequences file and
 * the segments. `isIncomplete`: there are such kinds, or there is a sequences file but no segment. Deleting segments does not
 * cause these signs: the spool saves the sequence numbers first, and never deletes the last segment. The only exception is a
 * full disk: the numbers are then not saved, and `kindsAhead` can have kinds of which nothing is lost.
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

/** Raises the end of the block's kind in `ends` to the sequence number after the last record of the block. */
export function trackEnd(
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
