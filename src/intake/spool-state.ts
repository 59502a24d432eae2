// Two small files next to the segments of the spool, which remain when segments are deleted or the operator switches stores. Their
// names and fields are part of the on-disk format.
//
// next-numbers.json: the next sequence number of each log kind. A store skips a sequence number that it has stored before, so using
// a number twice would lose a record. After a start that reported missing records of a kind, the file also has the number after the
// last of them, so that they are reported once.
//
// clean-stop.json: how many bytes of the last segment were complete when the spool was last closed. Appends never change these
// bytes, so an invalid block among them, or a shorter segment, is damage. A crash can leave an unfinished write only after them.
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../domain/errors.ts';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import type { SpooledLines } from '../store/store.ts';
import { isDiskFull } from '../system/disk-full.ts';
import { writeFileDurably } from '../system/files.ts';
import type { SpoolSegment } from './spool-segment.ts';

type SequenceKey = LogKind | `${LogKind} reported`;
export type Sequences = ReadonlyMap<SequenceKey, number>;

/** The records of one segment: for each kind, the sequence number of its first record, and that after its last one. */
export interface SegmentSequences {
  readonly startSequences: Map<LogKind, number>;
  readonly endSequences: Map<LogKind, number>;
}

export const SEQUENCES_FILE = 'next-numbers.json';
const CLEAN_STOP_FILE = 'clean-stop.json';

/** The file names of the segments in the directory of a spool, the oldest first. Empty if the directory does not exist. */
export function listSegments(directory: string): string[] {
  if (!existsSync(directory)) return [];
  return readdirSync(directory)
    .filter(name => /^\d+\.spool$/.test(name))
    .sort();
}

export async function readSequences(directory: string): Promise<Sequences> {
  const file = join(directory, SEQUENCES_FILE);
  if (!existsSync(file)) return new Map();
  try {
    return new Map(Object.entries(JSON.parse(await readFile(file, 'utf8'))) as [SequenceKey, number][]);
  } catch (error) {
    throw new OperatorError(
      `cannot read ${file}: ${(error as Error).message}; restore it from a backup, or delete it if --store was never changed`,
    );
  }
}

export function formatSequences(sequences: Sequences): string {
  return JSON.stringify(Object.fromEntries(sequences));
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

/** Adds a block to the sequence numbers of its segment. */
export function trackBlock(
  { startSequences, endSequences }: SegmentSequences,
  { kind, firstSequence, count }: Omit<SpooledLines, 'lines'>,
): void {
  if (!startSequences.has(kind)) startSequences.set(kind, firstSequence);
  endSequences.set(kind, Math.max(endSequences.get(kind) ?? 0, firstSequence + count));
}

/**
 * Finds the next sequence number of each kind. `segments`: the oldest first.
 *
 * Also finds signs of lost files. `kindsAhead`: the store has higher sequence numbers of these kinds than the sequences file and
 * the segments. `isIncomplete`: there are such kinds, or there is a sequences file but no segment. Deleting segments does not
 * cause these signs: the spool saves the sequence numbers first, and never deletes the last segment. The only exception is a
 * full disk: the numbers are then not saved, and `kindsAhead` can have kinds of which nothing is lost. `lost`: how many sequence
 * numbers are missing before or between segments. Numbers within a segment are not missing unless it is damaged (spool-repair.ts).
 */
export function findNextSequences(
  savedSequences: Sequences,
  segments: readonly SegmentSequences[],
  durableUpTo: (kind: LogKind) => number,
): {
  nextSequences: Map<SequenceKey, number>;
  kindsAhead: LogKind[];
  lost: Partial<Record<LogKind, number>>;
  isIncomplete: boolean;
} {
  const nextSequences = new Map(savedSequences);
  const kindsAhead: LogKind[] = [];
  const lost: Partial<Record<LogKind, number>> = {};
  for (const kind of LOG_KINDS) {
    const durable = durableUpTo(kind);
    const ends = segments.map(({ endSequences }) => endSequences.get(kind) ?? 0);
    const spoolEnd = Math.max(0, savedSequences.get(kind) ?? 0, ...ends);
    nextSequences.set(kind, Math.max(spoolEnd, durable));
    if (durable > spoolEnd) kindsAhead.push(kind);
    const known = Math.max(durable, savedSequences.get(`${kind} reported`) ?? 0);
    let end = durable === 0 ? undefined : durable; // an empty store may have replaced another one
    for (const { startSequences, endSequences } of segments) {
      const start = startSequences.get(kind);
      if (start === undefined) continue;
      const missing = start - Math.max(end ?? start, known);
      if (missing > 0) {
        lost[kind] = (lost[kind] ?? 0) + missing;
        nextSequences.set(`${kind} reported`, start);
      }
      end = endSequences.get(kind);
    }
  }
  const isIncomplete = kindsAhead.length > 0 || (segments.length === 0 && savedSequences.size > 0);
  return { nextSequences, kindsAhead, lost, isIncomplete };
}

/**
 * Call it when the spool is closed, and when a segment has become shorter. If the write fails, the earlier file stays. After a
 * close, that is harmless: the bytes that the earlier file counts are still complete. Otherwise, the next start can report an
 * unfinished write as damage, or the segment as too short.
 */
export async function writeCleanStop(directory: string, { number, validBytes }: SpoolSegment): Promise<void> {
  const content = JSON.stringify({ segment: number, bytes: validBytes });
  await writeFileDurably(join(directory, CLEAN_STOP_FILE), content).catch(() => {});
}

/**
 * How many bytes of the last segment were complete at the last clean stop; 0 if that is not known. Versions up to 0.2.0 do not
 * write clean-stop.json.
 */
export async function readCompleteBytes(directory: string): Promise<number> {
  try {
    const { segment, bytes } = JSON.parse(await readFile(join(directory, CLEAN_STOP_FILE), 'utf8'));
    return segment === Number.parseInt(listSegments(directory).at(-1) ?? '', 10) && bytes > 0 ? bytes : 0;
  } catch {
    return 0;
  }
}
