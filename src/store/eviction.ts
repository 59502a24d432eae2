// Keeps the data directory within --max-disk: removes the oldest stored records when the files come close to this limit. Never
// removes acknowledged records that are only in the spool.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Observe } from '../observe/event.ts';
import { STORE_FILE } from '../system/data-directory.ts';
import { every, type RepeatingJob, type Timer } from '../system/timer.ts';
import type { EvictionLimits, Store } from './store.ts';

const INTERVAL_MS = 60_000;
/**
 * Above START_SHARE of the limit, records are removed until TARGET_SHARE is reached. The space above START_SHARE is for the
 * copies that a compaction makes.
 */
const START_SHARE = 0.9;
const TARGET_SHARE = 0.8;
/** If files other than dendro.duckdb use more than this share, removing records does not help: something else fills the disk. */
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
    const { evictOldest, usedBytes } = this.#store;
    if (evictOldest === undefined || usedBytes === undefined) return;
    try {
      const measured = await this.#measureLimits();
      if ((await usedBytes()) <= measured.maxBytes) return;
      this.#checkOtherFiles(measured.otherBytes);
      // The store measures everything again after it has waited for a compaction or an erasure: temporary tables are then gone,
      // and the spool may be smaller.
      const count = await evictOldest(async () => {
        const limits = await this.#measureLimits();
        this.#checkOtherFiles(limits.otherBytes);
        return limits;
      });
      if (count > 0) this.#observe({ type: 'records_evicted', count });
    } catch (error) {
      if (!this.#isClosed) this.#observe({ type: 'eviction_failed', error });
    }
  }

  /** The limits for the store: the shares of the whole limit, minus the space that other files such as the spool use. */
  async #measureLimits(): Promise<EvictionLimits & { readonly otherBytes: number }> {
    const otherBytes = await measureOtherFiles(this.#dataDirectory);
    return {
      otherBytes,
      maxBytes: this.#maxBytes * START_SHARE - otherBytes,
      targetBytes: this.#maxBytes * TARGET_SHARE - otherBytes,
    };
  }

  #checkOtherFiles(otherBytes: number): void {
    if (otherBytes > this.#maxBytes * MAX_OTHER_SHARE)
      throw new Error(
        'files other than dendro.duckdb use more than half of the limit, so no more records are removed',
      );
  }
}

/** The disk space of all files except temporary ones and dendro.duckdb, which `usedBytes` measures without its unused blocks. */
async function measureOtherFiles(directory: string): Promise<number> {
  const skipped = [STORE_FILE, ...TEMPORARY_DIRECTORIES].map(name => join(directory, name));
  let bytes = 0;
  for (const entry of await readdir(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (!entry.isFile() || skipped.some(each => path === each || path.startsWith(`${each}/`))) continue;
    const stats = await stat(path).catch(() => undefined); // a file can disappear meanwhile
    bytes += (stats?.blocks ?? 0) * 512; // a sparse file uses less disk space than its size
  }
  return bytes;
}
