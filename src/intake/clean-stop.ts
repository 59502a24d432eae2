// clean-stop.json: how many bytes of the last segment were complete when the spool was last closed. Appends never change these
// bytes, so an invalid block among them, or a shorter segment, is damage. A crash can leave an unfinished write only after them.
// The file is not updated while the spool is open.
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileDurably } from '../system/files.ts';
import { listSegments, type SpoolSegment } from './spool-segment.ts';

/** The names are part of the on-disk format. */
interface CleanStop {
  /** Number of the last segment. */
  readonly segment: number;
  /** Length of that segment. */
  readonly bytes: number;
}

const FILE = 'clean-stop.json';

/**
 * Call it when the spool is closed, and when a repair has shortened the segment. If the write fails, the earlier file stays.
 * After a close, this is harmless: the bytes that it counts are still complete. After a repair, it counts too many bytes, so
 * that an unfinished write can be reported as damage, and the repaired segment as too short.
 */
export async function writeCleanStop(directory: string, { number, validBytes }: SpoolSegment): Promise<void> {
  const cleanStop: CleanStop = { segment: number, bytes: validBytes };
  await writeFileDurably(join(directory, FILE), JSON.stringify(cleanStop)).catch(() => {});
}

/**
 * How many bytes of the last segment were complete at the last clean stop; 0 if that is not known. Versions up to 0.2.0 write no such
 * file. `lastSegment`: the name of its file.
 */
export async function readCompleteBytes(
  directory: string,
  lastSegment = listSegments(directory).at(-1),
): Promise<number> {
  try {
    const { segment, bytes } = JSON.parse(await readFile(join(directory, FILE), 'utf8')) as CleanStop;
    return segment === Number.parseInt(lastSegment ?? '', 10) && bytes > 0 ? bytes : 0;
  } catch {
    return 0;
  }
}
