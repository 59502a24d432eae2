// What the components of the store share.
import { statfs } from 'node:fs/promises';
import { OperatorError } from '../../domain/errors.ts';
import type { Clock } from '../../system/clock.ts';
import type { PartWriter } from './part-writer.ts';
import type { Parts } from './parts.ts';

export interface StoreContext {
  readonly parts: Parts;
  readonly partWriter: PartWriter;
  readonly clock: Clock;
  /** No part becomes larger than this. */
  readonly maxPartBytes: number;
  /** Throws if the disk has no space for this many bytes. */
  readonly requireDiskSpace: (bytes: number) => Promise<void>;
}

/** Stays free for the spool. */
const RESERVE_BYTES = 64 * 1024 * 1024;

/** Throws unless this many bytes can be written. */
export async function requireDiskSpace(directory: string, bytes: number): Promise<void> {
  const { bavail, bsize } = await statfs(directory);
  const [free, needed] = [bavail * bsize, bytes + RESERVE_BYTES];
  if (free < needed)
    throw new OperatorError(`not enough disk space: ${free} bytes are free, ${needed} bytes are needed`);
}
