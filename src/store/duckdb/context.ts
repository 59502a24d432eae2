// What the components of the store share.
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
