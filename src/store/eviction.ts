// Keeps the data directory within --max-disk: removes the oldest stored records when the files come close to this limit. Never
// removes acknowledged records that are only in the spool.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Observe } from '../observe/event.ts';
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { Store } from './store.ts';

const INTERVAL_MS = 60_000;
/**
 * Above START_SHARE of the limit, records are removed until TARGET_SHARE is reached. The space above START_SHARE is for the
 * copies that a compaction makes.
 */
const START_SHARE = 0.9;
const TARGET_SHARE = 0.8;
/** If files other than parts use more than this share, removing records does not help: something else fills the disk. */
const MAX_OTHER_SHARE = 0.5;
/** In the data directory. Not counted, because they shrink by themselves: no records should be removed because of them. */
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
    if (this.#store.evictOldest === undefined) return;
    try {
      const others = await measureOtherFiles(this.#dataDirectory);
      const total = others + (this.#store.readStatistics().embedded?.fileBytes ?? 0);
      if (total <= this.#maxBytes * START_SHARE) return;
      if (others > this.#maxBytes * MAX_OTHER_SHARE)
        throw new Error('files other than parts use more than half of the limit, so no records are removed');
      const count = await this.#store.evictOldest(this.#maxBytes * TARGET_SHARE - others);
      if (count > 0) this.#observe({ type: 'records_evicted', count });
    } catch (error) {
      if (!this.#isClosed) this.#observe({ type: 'eviction_failed', error });
    }
  }
}

/** The disk space of all files except temporary ones and parts: a part that is being verified, or about to be deleted, does not count. */
async function measureOtherFiles(directory: string): Promise<number> {
  const skipped = TEMPORARY_DIRECTORIES.map(name => join(directory, name));
  let bytes = 0;
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || skipped.some(each => path.startsWith(`${each}/`))) continue;
    if (/\.duckdb(\.tmp)?$/.test(path)) continue;
    const stats = await stat(path).catch(() => undefined); // a file can disappear meanwhile
    bytes += (stats?.blocks ?? 0) * 512; // a sparse file uses less disk space than its size
  }
  return bytes;
}
