// Passes records from the spool to the store, in the order in which they were acknowledged. If the store fails to apply a batch,
// it is retried until it succeeds, and all later records wait. Records that the store rejects because of their content do not
// fail: they are quarantined (StoreCallbacks.recordRejected).
import { existsSync } from 'node:fs';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import type { Observe } from '../observe/event.ts';
import type { SpooledLines, Store } from '../store/store.ts';
import { systemTimer, type Timer } from '../system/timer.ts';
import { Spool, type SpoolWindow, spoolDirectoryIn } from './spool.ts';
import type { SpoolBlock } from './spool-block.ts';

/** Collects many small requests into one insert. Well below the 2 s within which acknowledged records must be visible. */
const BATCH_DELAY_MS = 250;
/** A slow store gets smaller batches that take it about this long, but not smaller than MIN_BATCH_BYTES. */
const BATCH_MS = 500;
const MIN_BATCH_BYTES = 1024 * 1024;
/** The pause after a failure. It doubles with each further failure to apply the same batch. */
const RETRY_DELAY_MS = 1_000;
const MAX_RETRY_DELAY_MS = 8_000;
/** Memtables that do not become full are flushed after this time, so that their records leave memory and the spool. */
const FLUSH_INTERVAL_MS = 3_600_000;
/**
 * If segments of this size wait only for a flush, all kinds are flushed. A few records of a quiet kind keep segments on disk that
 * a busy kind has filled.
 */
const MAX_UNFLUSHED_BYTES = 512 * 1024 * 1024;

export interface ApplierDependencies {
  readonly spool: Spool;
  readonly store: Store;
  readonly timer: Timer;
  readonly observe: Observe;
}

interface BatchWindow extends SpoolWindow {
  readonly batches: SpooledLines[];
}

/** A call of `drain` that has not finished. */
interface Drain {
  readonly resolve: (segmentNumber: number) => void;
  readonly reject: (error: unknown) => void;
}

export class Applier {
  readonly #dependencies: ApplierDependencies;
  /** What was read last from the spool. `batches` are those that are not applied yet. Undefined: all of it was applied. */
  #window: BatchWindow | undefined;
  /** The kind of the batch that the store failed to apply, and how often. */
  #failing: { readonly kind: LogKind; readonly failures: number } | undefined;
  /** How long the embedded store takes for a byte. Rises at once and falls slowly. 0: unknown. */
  #msPerByte = 0;
  /** When the applier began with the current window. Undefined: there is none. */
  #windowStartedAt: number | undefined;
  #flushAtMs: number;
  /** After a failed cleanup. */
  #cleanUpAgainAtMs = 0;
  /** Runs beside the applier, because a flush can take seconds. Never rejects. */
  #cleanup: Promise<void> | undefined;
  #drains: Drain[] = [];
  #running: Promise<void> = Promise.resolve();
  #wake = () => {};
  #closed = false;

  constructor(dependencies: ApplierDependencies) {
    this.#dependencies = dependencies;
    this.#flushAtMs = dependencies.timer.now() + FLUSH_INTERVAL_MS;
  }

  /**
   * How long the embedded store will take to apply what is in the spool, and at least how long it has taken for the current window. 0
   * while it fails: the spool is then a buffer until it recovers. Always 0 for ClickHouse, whose inserts take long.
   */
  get waitMs(): number {
    const { spool, store, timer } = this.#dependencies;
    if (store.name !== 'duckdb' || this.#failing !== undefined) return 0;
    const elapsedMs = timer.now() - (this.#windowStartedAt ?? timer.now());
    const isMuch = spool.unappliedBytes > MIN_BATCH_BYTES; // a small insert takes long for its size
    return Math.max(elapsedMs, isMuch ? spool.unappliedBytes * this.#msPerByte : 0);
  }

  /** Tries once to apply what is in the spool, then resolves even if that failed. Keeps applying and retrying in the background. */
  async start(): Promise<void> {
    await this.applySpooled().catch(() => {}); // reported as events
    this.#running = this.#run();
  }

  /**
   * Applies and flushes all records that are in the spool now, and deletes their segments. If it throws, what is not deleted stays in
   * the spool. Otherwise, it has flushed the records before the segment whose number it returns.
   */
  drain(): Promise<number> {
    if (this.#closed) return Promise.reject(intakeClosed());
    return new Promise((resolve, reject) => {
      this.#drains.push({ resolve, reject });
      this.#wake();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    await this.#running;
    await this.#cleanup;
    for (const { reject } of this.#drains.splice(0)) reject(intakeClosed());
  }

  async #run(): Promise<void> {
    const { spool, store, timer } = this.#dependencies;
    while (!this.#closed) {
      await this.#waitForWork();
      const startedAt = timer.now();
      const drains = this.#cleanup === undefined ? this.#drains.splice(0) : [];
      try {
        const segmentNumber = drains.length > 0 ? await spool.rotate() : 0;
        await this.applySpooled();
        this.#startCleanup(drains, segmentNumber);
        if (spool.unappliedBytes < store.applyBatchBytes)
          await this.#pause(BATCH_DELAY_MS - (timer.now() - startedAt));
      } catch (error) {
        for (const { reject } of drains) reject(error);
        this.#startCleanup(); // deleting segments may free the space that the store needs
        this.#msPerByte = 0; // unknown until a batch succeeds
        const failures = this.#failing?.failures ?? 1;
        await this.#pause(Math.min(RETRY_DELAY_MS * 2 ** (failures - 1), MAX_RETRY_DELAY_MS));
      }
    }
  }

  /** Resolves when there are records to apply, or when a drain or a flush is due. */
  async #waitForWork(): Promise<void> {
    const { spool, timer } = this.#dependencies;
    if (spool.unappliedBytes > 0 || (this.#drains.length > 0 && this.#cleanup === undefined)) return;
    await Promise.race([spool.waitForAppend(), this.#pause(Math.max(0, this.#flushAtMs - timer.now()))]);
    this.#wake(); // cancels the timer of the pause
  }

  /** Applies all records that are in the spool now. Throws at the first failure; the next call continues there. */
  async applySpooled(): Promise<void> {
    const { spool, timer } = this.#dependencies;
    try {
      for (let left = spool.unappliedBytes; left > 0; ) {
        const startedAt = timer.now();
        this.#windowStartedAt = startedAt;
        this.#window ??= await this.#read();
        const { batches, bytes, confirm } = this.#window;
        for (let batch = batches[0]; batch !== undefined; batch = batches[0]) {
          if (this.#closed) throw intakeClosed();
          await this.#apply(batch);
          batches.shift();
        }
        confirm();
        this.#window = undefined;
        this.#measure(bytes, timer.now() - startedAt);
        left -= bytes;
      }
    } finally {
      this.#windowStartedAt = undefined;
    }
  }

  #measure(bytes: number, ms: number): void {
    if (this.#dependencies.store.name !== 'duckdb') return;
    const msPerByte = ms / bytes;
    if (msPerByte < this.#msPerByte) this.#msPerByte += (msPerByte - this.#msPerByte) / 4;
    else if (bytes >= MIN_BATCH_BYTES / 2) this.#msPerByte = msPerByte;
  }

  async #read(): Promise<BatchWindow> {
    const { spool, store, observe } = this.#dependencies;
    try {
      const bytes = Math.max(MIN_BATCH_BYTES, BATCH_MS / this.#msPerByte);
      const window = await spool.readUnapplied(Math.min(store.applyBatchBytes, bytes));
      return { ...window, batches: mergeBlocks(window.blocks) };
    } catch (error) {
      if (!this.#closed) observe({ type: 'spool_read_failed', error });
      throw error;
    }
  }

  async #apply(batch: SpooledLines): Promise<void> {
    const { store, observe } = this.#dependencies;
    const { kind, firstSequence, count } = batch;
    const flushedUpTo = store.flushedUpTo(kind); // the store skips these records
    try {
      await store.apply(batch);
    } catch (error) {
      if (this.#closed) throw error;
      this.#failing = { kind, failures: (this.#failing?.failures ?? 0) + 1 };
      observe({ type: 'apply_failed', kind, error });
      throw error;
    }
    const newCount = Math.min(count, firstSequence + count - flushedUpTo);
    if (newCount > 0) observe({ type: 'records_applied', kind, count: newCount });
    if (this.#failing !== undefined) observe({ type: 'apply_recovered', ...this.#failing });
    this.#failing = undefined;
  }

  /** Does nothing while a cleanup runs. Drains wait until then. */
  #startCleanup(drains: readonly Drain[] = [], segmentNumber = 0): void {
    if (drains.length === 0 && this.#dependencies.timer.now() < this.#cleanUpAgainAtMs) return;
    this.#cleanup ??= this.#cleanUp(drains, segmentNumber).finally(() => {
      this.#cleanup = undefined;
      if (this.#drains.length > 0) this.#wake();
    });
  }

  /** Flushes if that is due, and deletes segments that are no longer needed. A failure is retried after MAX_RETRY_DELAY_MS. */
  async #cleanUp(drains: readonly Drain[], segmentNumber: number): Promise<void> {
    const { spool, store, timer, observe } = this.#dependencies;
    const flushedUpTo = (kind: LogKind) => store.flushedUpTo(kind);
    const isDue = timer.now() >= this.#flushAtMs || spool.unflushedBytes(flushedUpTo) > MAX_UNFLUSHED_BYTES;
    try {
      if (drains.length > 0 || isDue) {
        this.#flushAtMs = timer.now() + FLUSH_INTERVAL_MS;
        await store.flush(LOG_KINDS);
      }
      await spool.deleteFlushed(flushedUpTo);
      for (const { resolve } of drains) resolve(segmentNumber);
    } catch (error) {
      this.#flushAtMs = this.#cleanUpAgainAtMs = timer.now() + MAX_RETRY_DELAY_MS;
      this.#wake(); // the applier may wait for the flush after the next hour
      if (!this.#closed) observe({ type: 'spool_cleanup_failed', error });
      for (const { reject } of drains) reject(error);
    }
  }

  /** Resolves after `ms` or when `#wake` is called. */
  async #pause(ms: number): Promise<void> {
    if (this.#closed || ms <= 0) return;
    await new Promise<void>(resolve => {
      const cancel = this.#dependencies.timer.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

function intakeClosed(): Error {
  return new Error('the intake is closed');
}

/**
 * Applies the records that a stopped server left in the spool, for commands that read the data directory. Opens the spool like a
 * server: a damaged segment is repaired and reported. The caller must hold the lock of the data directory.
 */
export async function replaySpool(dataDirectory: string, store: Store, observe: Observe): Promise<void> {
  const directory = spoolDirectoryIn(dataDirectory);
  const durableUpTo = (kind: LogKind) => store.durableUpTo(kind);
  if (!existsSync(directory)) {
    const kinds = LOG_KINDS.filter(kind => durableUpTo(kind) > 0);
    if (kinds.length > 0) observe({ type: 'spool_incomplete', directory, kinds, lost: {} });
    return;
  }
  const spool = await Spool.open({ directory, durableUpTo, observe });
  try {
    // An error of the applier is thrown, so it needs no event.
    await new Applier({ spool, store, timer: systemTimer, observe: () => {} }).applySpooled();
  } finally {
    await spool.close();
  }
}

/** Concatenates blocks of the same kind with contiguous sequence numbers. */
function mergeBlocks(blocks: readonly SpoolBlock[]): SpooledLines[] {
  const runs: (Omit<SpooledLines, 'lines'> & { count: number; lines: Uint8Array[] })[] = [];
  const lastRunOfKind = new Map<LogKind, (typeof runs)[number]>();
  for (const { kind, firstSequence, count, lines } of blocks) {
    let run = lastRunOfKind.get(kind);
    if (run === undefined || run.firstSequence + run.count !== firstSequence) {
      run = { kind, firstSequence, count: 0, lines: [] };
      runs.push(run);
      lastRunOfKind.set(kind, run);
    }
    run.count += count;
    run.lines.push(lines);
  }
  return runs.map(run => {
    const [first = Buffer.alloc(0)] = run.lines;
    return { ...run, lines: run.lines.length === 1 ? first : Buffer.concat(run.lines) };
  });
}
