// The background work of a store: deletes expired records, removes the oldest ones when the disk limit is near, and merges parts. One
// round does each of them once. As long as there are parts to merge, the next round follows at once.
import { readdir, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { Observe } from '../observe/event.ts';
import { type Clock, MICROS_PER_DAY } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import type { Store } from './store.ts';

const INTERVAL_MS = 10_000;
const MEASURE_MS = 60_000;
const HOUR_MS = 3_600_000;
/** The pause after expired records could not be deleted, such as on a full disk. */
const RETRY_MS = 60_000;
/** If the clock changed by more than this relative to the timer, it jumped. Time synchronization changes it by seconds. */
const JUMP_MS = 600_000;
/**
 * Above START_SHARE of the disk limit, records are removed until TARGET_SHARE is reached. The space above START_SHARE is for the
 * copies that a compaction makes.
 */
const START_SHARE = 0.9;
const TARGET_SHARE = 0.8;
/** If files other than parts use more than this share, removing records does not help: something else fills the disk. */
const MAX_OTHER_SHARE = 0.5;
/** In the data directory. Not counted, because they shrink by themselves: no records should be removed because of them. */
const TEMPORARY_DIRECTORIES = ['tmp', 'staging'];

export interface MaintenanceOptions {
  readonly dataDirectory: string;
  readonly retentionDays: number;
  /** The limit of the data directory; undefined: none. */
  readonly maxDiskBytes?: number | undefined;
}

export class Maintenance {
  readonly #store: Store;
  readonly #options: MaintenanceOptions;
  readonly #clock: Clock;
  readonly #timer: Timer;
  readonly #observe: Observe;
  /** Clock minus timer, in milliseconds, in the last round. */
  #offsetMs: number;
  /** The time of the last jump of the clock, of the last deletion, or of the start, in milliseconds of the timer. */
  #steadySince: number;
  #measuredAt: number;
  #cancel = () => {};
  #isClosed = false;

  constructor(store: Store, options: MaintenanceOptions, clock: Clock, timer: Timer, observe: Observe) {
    this.#store = store;
    this.#options = options;
    this.#clock = clock;
    this.#timer = timer;
    this.#observe = observe;
    this.#offsetMs = this.#readOffset();
    this.#steadySince = timer.now();
    this.#measuredAt = timer.now();
  }

  start(): void {
    this.#schedule(INTERVAL_MS);
  }

  /** Does not wait for running work: closing the store cancels it. */
  close(): void {
    this.#isClosed = true;
    this.#cancel();
  }

  #schedule(delayMs: number): void {
    if (this.#isClosed) return;
    this.#cancel = this.#timer.after(delayMs, async () => this.#schedule(await this.#runRound()));
  }

  /** Returns the delay until the next round in milliseconds. */
  async #runRound(): Promise<number> {
    await this.#try('retention_failed', () => this.#deleteExpired());
    await this.#try('eviction_failed', () => this.#evictOldest());
    const isCompacted = await this.#try('compaction_failed', () => this.#compact());
    return isCompacted ? 0 : INTERVAL_MS;
  }

  async #try<T>(
    type: 'retention_failed' | 'eviction_failed' | 'compaction_failed',
    work: () => Promise<T>,
  ): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      if (!this.#isClosed) this.#observe({ type, error });
      return undefined;
    }
  }

  /**
   * Every hour, or a minute after a failure. If the clock jumped far ahead, all records would seem expired. So after the start, and after a jump, nothing is deleted
   * until the clock has been steady for an hour.
   */
  async #deleteExpired(): Promise<void> {
    const now = this.#timer.now();
    const jumpMs = this.#readOffset() - this.#offsetMs;
    this.#offsetMs += jumpMs;
    if (Math.abs(jumpMs) > JUMP_MS) {
      this.#steadySince = now;
      this.#observe({ type: 'clock_jumped', seconds: Math.round(jumpMs / 1000) });
    }
    if (now - this.#steadySince < HOUR_MS) return;
    this.#steadySince = now - HOUR_MS + RETRY_MS;
    const retention = BigInt(this.#options.retentionDays) * MICROS_PER_DAY;
    const expiredBefore = this.#clock() - retention;
    const maxDelay = retention / 10n > MICROS_PER_DAY ? retention / 10n : MICROS_PER_DAY;
    const count = await this.#store.maintain({
      expire: { expiredBefore, rewriteBefore: expiredBefore - maxDelay },
    });
    this.#steadySince = now;
    if (count > 0) this.#observe({ type: 'records_expired', count });
  }

  /** Keeps the data directory within the disk limit. Never removes acknowledged records that are only in the spool. */
  async #evictOldest(): Promise<void> {
    const { dataDirectory, maxDiskBytes } = this.#options;
    const parts = this.#store.readStatistics().embedded?.fileBytes;
    if (maxDiskBytes === undefined || parts === undefined) return;
    if (this.#timer.now() - this.#measuredAt < MEASURE_MS) return;
    this.#measuredAt = this.#timer.now();
    const others = await measureOtherFiles(dataDirectory);
    if (others + parts <= maxDiskBytes * START_SHARE) return;
    if (others > maxDiskBytes * MAX_OTHER_SHARE)
      throw new Error('files other than parts use more than half of the limit, so no records are removed');
    const count = await this.#store.maintain({ evictTo: maxDiskBytes * TARGET_SHARE - others });
    if (count > 0) this.#observe({ type: 'records_evicted', count });
  }

  /** Returns whether there was work. */
  async #compact(): Promise<boolean> {
    const startedAt = this.#timer.now();
    if ((await this.#store.maintain('compact')) === 0) return false;
    this.#observe({ type: 'compacted', durationMs: this.#timer.now() - startedAt });
    return true;
  }

  #readOffset(): number {
    return Number(this.#clock() / 1000n) - this.#timer.now();
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
