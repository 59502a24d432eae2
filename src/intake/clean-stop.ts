// Up to where the spool was complete when it was last closed. Later appends go behind this place, so a crash can leave an unfinished
// write only there: invalid bytes before it are damage. The file stays valid while the spool is open, and after a crash.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileDurably } from '../system/files.ts';
import type { SpoolSegment } from './spool-segment.ts';

/** The names are part of the on-disk format. */
interface CleanStop {
  /** Number of the last segment. */
  readonly segment: number;
  /** Length of that segment. */
  readonly bytes: number;
}

const FILE = 'clean-stop.json';

/**
 * Call it when the spool is closed, and when a repair has shortened the segment. A failure is harmless: an earlier file still holds
 * for the bytes before its place. After a repair, an unfinished write may then count as damage.
 */
export async function writeCleanStop(directory: string, { number, validBytes }: SpoolSegment): Promise<void> {
  const cleanStop: CleanStop = { segment: number, bytes: validBytes };
  await writeFileDurably(join(directory, FILE), JSON.stringify(cleanStop)).catch(() => {});
}

/**
 * The length of the last segment that was complete at a clean stop; 0 if nothing is known. Versions up to 0.2.0 write no such file.
 */
export async function readCompleteBytes(directory: string, lastSegment: number): Promise<number> {
  try {
    const { segment, bytes } = JSON.parse(await readFile(join(directory, FILE), 'utf8')) as CleanStop;
    return segment === lastSegment && bytes > 0 ? bytes : 0;
  } catch {
    return 0;
  }
}
