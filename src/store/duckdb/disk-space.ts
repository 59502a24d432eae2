// Checks the free disk space before parts are written, so that some stays free for the spool.
import { statfs } from 'node:fs/promises';

/** Stays free. */
const RESERVE_BYTES = 64 * 1024 * 1024;

/** Throws unless this many bytes can be written. */
export async function requireDiskSpace(directory: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const [free, needed] = [bavail * bsize, bytes + RESERVE_BYTES];
  if (free < needed)
    throw new Error(`not enough disk space: ${free} bytes are free, ${needed} bytes are needed`);
}
