// clean-stop.json: how many bytes of the last segment were complete when the spool was last closed. Appends never change these
// bytes, so an invalid block among them, or a shorter segment, is damage. A crash can leave an unfinished write only after them.
// Appends do not update the file. Opening the spool updates it only if the segment has become shorter.
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
 * Call it when the spool is closed, when the segment is found to be shorter than this file says, and when a repair has shortened
 * it. If the write fails, the earlier file stays. After a close, that is harmless: the bytes that the earlier file counts are
 * still complete. In the other cases, the earlier file counts too many bytes. The next start can then report an unfinished write
 * as damage, or the segment as too short.
 */
export async function writeCleanStop(directory: string, { number, validBytes }: SpoolSegment): Promise<void> {
  const cleanStop: CleanStop = { segment: number, bytes: validBytes };
  await writeFileDurably(join(directory, FILE), JSON.stringify(cleanStop)).catch(() => {});
}

/**
 * How many bytes of the last segment were complete at the last clean stop; 0 if that is not known. Versions up to 0.2.0 do not
 * write clean-stop.json. `lastSegment` is the file name of the last segment.
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
