// Passes records from the spool to the store, in order. Retries a failed batch until it succeeds. The store quarantines
// records whose content it cannot store.
import { existsSync } from 'node:fs';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import type { Observe } from '../observe/event.ts';
import type { SpooledLines, Store } from '../store/store.ts';
import { systemTimer, type Timer } from '../system/timer.ts';
import { Spool, spoolDirectoryIn } from './spool.ts';
import type { SpoolBlock } from './spool-segment.ts';

/** Collects many small requests into one insert. Well below the 2 s within which acknowledged records must be visible. */
const BATCH_DELAY_MS = 250;
const RETRY_DELAY_MS = 1_000;
/** Records that do not fill a row group are flushed at this interval, so that they leave memory and the spool. */
const FLUSH_INTERVAL_MS = 3_600_000;
/**
 * A few unflushed records of a quiet kind keep segments on disk that a busy kind has filled. Above this size the kinds of
 * the oldest segment are flushed.
 */
const MAX_SPOOL_BYTES = 512 * 1024 * 1024;

export interface ApplierDependencies {
  readonly spool: Spool;
  readonly store: Store;
  readonly timer: Timer;
  readonly observe: Observe;
}

export class Applier {
  readonly #dependencies: ApplierDependencies;
  /** For each kind, the sequence number up to which records were reported as applied. Exclusive. */
  readonly #reportedUpTo = new Map<LogKind, number>();
  #lastFlushMs: number;
  /** Consecutive failures. */
  #failures = 0;
  #closed = false;
  #running: Promise<void> = Promise.resolve();
  #wake = () => {};

  constructor(dependencies: ApplierDependencies) {
    this.#dependencies = dependencies;
    this.#lastFlushMs = dependencies.timer.now();
    for (const kind of LOG_KINDS) this.#reportedUpTo.set(kind, dependencies.store.flushedUpTo(kind));
  }

  /** Applies all records that are in the spool. */
  async catchUp(): Promise<void> {
    while (this.#dependencies.spool.unappliedBytes > 0) await this.#applyNext();
  }

  /** Tries once to catch up, then resolves even if that failed. Keeps applying and retrying in the background. */
  async start(): Promise<void> {
    await this.catchUp().catch(error => this.#reportFailure(error));
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { spool, store } = this.#dependencies;
    while (!this.#closed) {
      await Promise.race([spool.waitForRecords(), this.#pause(FLUSH_INTERVAL_MS)]);
      this.#wake(); // cancels the timer of the pause
      if (this.#closed) return;
      try {
        if (spool.unappliedBytes > 0) await this.#applyNext();
        await this.#flushIfDue();
        await this.#deleteFlushed();
        this.#reportRecovery();
        if (spool.unappliedBytes < store.applyBatchBytes) await this.#pause(BATCH_DELAY_MS);
      } catch (error) {
        if (this.#closed) return;
        this.#reportFailure(error);
        await this.#pause(RETRY_DELAY_MS);
      }
    }
  }

  async #applyNext(): Promise<void> {
    const { spool, store } = this.#dependencies;
    const { blocks, confirm } = await spool.read(store.applyBatchBytes);
    if (blocks.length === 0) throw new Error('the spool contains a block that is no longer readable');
    const failedKinds = new Map<LogKind, unknown>();
    for (const lines of mergeBlocks(blocks)) {
      if (failedKinds.has(lines.kind)) continue;
      try {
        await store.apply(lines);
        this.#reportApplied(lines);
      } catch (error) {
        failedKinds.set(lines.kind, error); // only the table of this kind may be broken, so the other kinds continue
      }
    }
    for (const error of failedKinds.values()) throw error;
    confirm();
  }

  /** Reports each record once, although a retry passes the whole batch to the store again. */
  #reportApplied({ kind, firstSequence, count }: SpooledLines): void {
    const end = firstSequence + count;
    const newCount = end - Math.max(firstSequence, this.#reportedUpTo.get(kind) ?? 0);
    if (newCount <= 0) return;
    this.#reportedUpTo.set(kind, end);
    this.#dependencies.observe({ type: 'records_applied', kind, count: newCount });
  }

  #reportFailure(error: unknown): void {
    this.#failures++;
    this.#dependencies.observe({ type: 'apply_failed', error });
  }

  #reportRecovery(): void {
    if (this.#failures === 0) return;
    this.#dependencies.observe({ type: 'apply_recovered', failures: this.#failures });
    this.#failures = 0;
  }

  async #flushIfDue(): Promise<void> {
    const { spool, store, timer } = this.#dependencies;
    if (timer.now() - this.#lastFlushMs >= FLUSH_INTERVAL_MS) {
      this.#lastFlushMs = timer.now();
      await store.flush(LOG_KINDS);
    } else if (spool.diskBytes > MAX_SPOOL_BYTES) {
      await store.flush(spool.unflushedKindsInOldest(kind => store.flushedUpTo(kind)));
    }
  }

  #deleteFlushed(): Promise<void> {
    const { spool, store } = this.#dependencies;
    return spool.deleteFlushed(kind => store.flushedUpTo(kind));
  }

  /** Resolves after `ms` or when `#wake` is called. */
  #pause(ms: number): Promise<void> {
    return new Promise(resolve => {
      const cancel = this.#dependencies.timer.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }
}

/**
 * Applies the records that a stopped server left in the spool, for commands that read the data directory. Deletes nothing from
 * the spool. The caller must hold the lock of the data directory.
 */
export async function replaySpool(dataDirectory: string, store: Store): Promise<void> {
  const directory = spoolDirectoryIn(dataDirectory);
  if (!existsSync(directory)) return;
  const observe = () => {};
  const spool = await Spool.open(directory, kind => store.durableUpTo(kind), observe);
  await new Applier({ spool, store, timer: systemTimer, observe }).catchUp();
  await spool.close();
}

/** Blocks of one kind with contiguous sequence numbers. */
interface SequenceRun {
  readonly kind: LogKind;
  readonly firstSequence: number;
  count: number;
  readonly lines: Uint8Array[];
}

/** Concatenates blocks of the same kind with contiguous sequence numbers. */
function mergeBlocks(blocks: readonly SpoolBlock[]): SpooledLines[] {
  const runs: SequenceRun[] = [];
  const lastRunOfKind = new Map<LogKind, SequenceRun>();
  for (const { header, lines } of blocks) {
    const { kind, firstSequence, count } = header;
    let run = lastRunOfKind.get(kind);
    if (run === undefined || run.firstSequence + run.count !== firstSequence) {
      run = { kind, firstSequence, count: 0, lines: [] };
      runs.push(run);
      lastRunOfKind.set(kind, run);
    }
    run.count += count;
    run.lines.push(lines);
  }
  return runs.map(run => ({ ...run, lines: Buffer.concat(run.lines) }));
}
