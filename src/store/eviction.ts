// Keeps the data directory within --max-disk: removes the oldest stored records when the files come close to it. Records that are
// acknowledged and not stored yet, in the spool, are never removed.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Observe } from '../observe/event.ts';
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { Store } from './store.ts';

const INTERVAL_MS = 60_000;
/** Above the first share of the limit, records are removed down to the second. The rest is space for copies during compaction. */
const START_SHARE = 0.9;
const TARGET_SHARE = 0.8;
/** If files other than the store's use more than this share, removing records does not help: something else fills the disk. */
const MAX_OTHER_SHARE = 0.5;
/** Not counted: these directories of the data directory shrink by themselves, but evicted records are gone for good. */
const TEMPORARY_DIRECTORIES = ['tmp', 'staging'];

export class Eviction {
  readonly #store: Store;
  readonly #dataDirectory: string;
  readonly #maxBytes: number;
  readonly #timer: Timer;
  readonly #observe: Observe;
  #job: RepeatingJob | undefined;
  #isClosed = false;

  constructor(store: Store, dataDirectory: string, maxBytes: number, timer: Timer, observe: Observe) {
    this.#store = store;
    this.#dataDirectory = dataDirectory;
    this.#maxBytes = maxBytes;
    this.#timer = timer;
    this.#observe = observe;
  }

  start(): void {
    this.#job = every(this.#timer, INTERVAL_MS, () => this.#check());
  }

  /** Does not wait for a running removal: closing the store cancels it. */
  close(): void {
    this.#isClosed = true;
    void this.#job?.stop();
  }

  async #check(): Promise<void> {
    const { evictOldest, usedBytes } = this.#store;
    if (evictOldest === undefined || usedBytes === undefined) return;
    try {
      // The other files, such as the spool, leave less for the store.
      const otherBytes = await measureOtherFiles(this.#dataDirectory);
      const stored = await usedBytes();
      if (stored + otherBytes <= this.#maxBytes * START_SHARE) return;
      if (otherBytes > this.#maxBytes * MAX_OTHER_SHARE)
        throw new Error(
          'files other than dendro.duckdb use more than half of the limit; no record was removed',
        );
      const count = await evictOldest(this.#maxBytes * TARGET_SHARE - otherBytes);
      if (count > 0) this.#observe({ type: 'records_evicted', count });
    } catch (error) {
      if (!this.#isClosed) this.#observe({ type: 'eviction_failed', error });
    }
  }
}

/** The disk space of all files except temporary ones and dendro.duckdb, which `usedBytes` measures without its unused blocks. */
async function measureOtherFiles(directory: string): Promise<number> {
  const skipped = ['dendro.duckdb', ...TEMPORARY_DIRECTORIES].map(name => join(directory, name));
  let bytes = 0;
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || skipped.some(each => path === each || path.startsWith(`${each}/`))) continue;
    const stats = await stat(path).catch(() => undefined); // a file can disappear meanwhile
    bytes += (stats?.blocks ?? 0) * 512; // a sparse file uses less disk space than its size
  }
  return bytes;
}
