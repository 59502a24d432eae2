// Passes records from the spool to the store, each kind in order. Retries a kind that fails until it succeeds, while the other
// kinds advance. Records that the store rejects because of their content are quarantined (StoreCallbacks.recordRejected).
import { existsSync } from 'node:fs';
import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import type { Observe } from '../observe/event.ts';
import type { SpooledLines, Store } from '../store/store.ts';
import { systemTimer, type Timer } from '../system/timer.ts';
import { Spool, spoolDirectoryIn } from './spool.ts';
import type { SpoolBlock } from './spool-block.ts';

/** Collects many small requests into one insert. Well below the 2 s within which acknowledged records must be visible. */
const BATCH_DELAY_MS = 250;
/** The pause after a failed cleanup, and after the first failure of a kind. For a kind, it doubles with each further failure. */
const RETRY_DELAY_MS = 1_000;
const MAX_RETRY_DELAY_MS = 8_000;
/**
 * Memtables that do not become full are flushed after this time, so that their records leave memory and the spool. If records
 * arrive rarely, it can take up to twice as long.
 */
const FLUSH_INTERVAL_MS = 3_600_000;
/**
 * The limit for the size of all segments with unflushed records. It exists because a few records of a quiet kind keep segments on
 * disk that a busy kind has filled. Above it, all kinds with unflushed records in the oldest of these segments are flushed.
 * Segments with unapplied records are skipped, because a flush cannot free them, and so are those with unflushed records of a
 * failing kind.
 */
const MAX_UNFLUSHED_BYTES = 512 * 1024 * 1024;
/**
 * The limit for the whole spool while the store fails to apply some kinds and applies others. Above it, new records of the
 * failing kinds are rejected.
 */
const MAX_SPOOL_BYTES = 512 * 1024 * 1024;

export interface ApplierDependencies {
  readonly spool: Spool;
  readonly store: Store;
  readonly timer: Timer;
  readonly observe: Observe;
}

/** A kind whose records the store failed to apply. */
interface FailingKind {
  /** Consecutive failures. */
  readonly failures: number;
  readonly retryAtMs: number;
  /** True after the store has applied another kind: the store itself works. False again when one more kind begins to fail. */
  othersSucceed: boolean;
}

/** A call of `drain` that has not finished. */
interface Drain {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

export class Applier {
  readonly #dependencies: ApplierDependencies;
  /** For each kind, the sequence number up to which records were reported as applied. Exclusive. */
  readonly #reportedUpTo = new Map<LogKind, number>();
  readonly #failing = new Map<LogKind, FailingKind>();
  #lastFlushMs: number;
  /** When to retry a failed cleanup, even if no records arrive. Infinite: the last one did not fail. */
  #retryCleanUpAtMs = Number.POSITIVE_INFINITY;
  #closed = false;
  #running: Promise<void> = Promise.resolve();
  #wake = () => {};
  #drains: Drain[] = [];

  constructor(dependencies: ApplierDependencies) {
    this.#dependencies = dependencies;
    this.#lastFlushMs = dependencies.timer.now();
    for (const kind of LOG_KINDS) this.#reportedUpTo.set(kind, dependencies.store.flushedUpTo(kind));
  }

  /** Applies all records that are in the spool. If some kinds fail, applies the others, then throws the first error. */
  async catchUp(): Promise<void> {
    const { spool } = this.#dependencies;
    const errors = new Map<LogKind, unknown>();
    while (!this.#closed) {
      const kinds = spool.unappliedKinds.filter(kind => !errors.has(kind));
      if (kinds.length === 0) break;
      for (const [kind, error] of await this.#applyEach(kinds)) errors.set(kind, error);
    }
    for (const error of errors.values()) throw error;
  }

  /** Tries once to catch up, then resolves even if that failed. Keeps applying and retrying in the background. */
  async start(): Promise<void> {
    await this.catchUp().catch(() => {}); // reported as events
    this.#running = this.#run();
  }

  /**
   * Applies and flushes all records that are in the spool now, and deletes their segments. If it throws, what is not deleted stays in
   * the spool.
   */
  drain(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#drains.push({ resolve, reject });
      this.#wake();
      if (this.#closed) this.#rejectDrains();
    });
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#wake();
    await this.#running;
    this.#rejectDrains();
  }

  /**
   * Returns false if records of a failing kind must be rejected, so that other kinds are still accepted: if the store fails to
   * apply some kinds and applies others, the failing ones get at most half of the queue, and nothing while the spool exceeds
   * MAX_SPOOL_BYTES. Does not check whether the whole queue is full: `Intake.openBodyMemory` does.
   */
  hasSpaceFor(kind: LogKind, queueBytes: number): boolean {
    if (this.#failing.get(kind)?.othersSucceed !== true) return true;
    const { spool } = this.#dependencies;
    const failingBytes = sumOf([...this.#failing.keys()], each => spool.unappliedBytesOf(each));
    return failingBytes <= queueBytes / 2 && spool.diskBytes <= MAX_SPOOL_BYTES;
  }

  async #run(): Promise<void> {
    const { spool, store } = this.#dependencies;
    while (!this.#closed) {
      await this.#waitForWork();
      if (this.#closed) return;
      await this.#applyEach(this.#dueKinds());
      await this.#cleanUp();
      await this.#runDrains();
      const dueBytes = sumOf(this.#dueKinds(), kind => spool.unappliedBytesOf(kind));
      if (dueBytes < store.applyBatchBytes && !this.#closed) await this.#pause(BATCH_DELAY_MS);
    }
  }

  /** The kinds with unapplied records, without those that wait for their next attempt. */
  #dueKinds(): LogKind[] {
    const now = this.#dependencies.timer.now();
    return this.#dependencies.spool.unappliedKinds.filter(
      kind => (this.#failing.get(kind)?.retryAtMs ?? 0) <= now,
    );
  }

  /** Resolves when records arrive, a drain starts, a kind or the cleanup is due for a retry, or FLUSH_INTERVAL_MS has passed. */
  async #waitForWork(): Promise<void> {
    if (this.#dueKinds().length > 0 || this.#drains.length > 0) return;
    const { spool, timer } = this.#dependencies;
    const retriesAtMs = [...this.#failing.values()].map(({ retryAtMs }) => retryAtMs);
    const nextRetryMs = Math.min(this.#retryCleanUpAtMs, ...retriesAtMs) - timer.now();
    await Promise.race([
      spool.waitForAppend(),
      this.#pause(Math.max(0, Math.min(FLUSH_INTERVAL_MS, nextRetryMs))),
    ]);
    this.#wake(); // cancels the timer of the pause
  }

  /** Applies about one batch for each of these kinds. Returns the errors of those that failed. */
  async #applyEach(kinds: readonly LogKind[]): Promise<ReadonlyMap<LogKind, unknown>> {
    const errors = new Map<LogKind, unknown>();
    for (let left = kinds; left.length > 0 && !this.#closed; ) {
      const result = await this.#applyWindow(left);
      for (const [kind, error] of result.errors) errors.set(kind, error);
      left = left.filter(kind => !result.kinds.includes(kind));
    }
    return errors;
  }

  /**
   * Reads one window of the spool (a contiguous range of a segment, `SpoolWindow`) and applies it. Returns the kinds in the
   * window, and the errors of those that failed. If the read fails, such as at a damaged block, tries the first kind alone, and
   * `#applyEach` calls this again for the others. So a damaged block stops only the kinds that have not passed it.
   */
  async #applyWindow(
    kinds: readonly LogKind[],
  ): Promise<{ kinds: readonly LogKind[]; errors: ReadonlyMap<LogKind, unknown> }> {
    const { spool, store } = this.#dependencies;
    const errors = new Map<LogKind, unknown>();
    const window = await spool.read(kinds, store.applyBatchBytes).catch(error => {
      for (const kind of kinds) errors.set(kind, error);
    });
    if (window === undefined && kinds.length > 1) return this.#applyWindow(kinds.slice(0, 1));
    const applied = new Set<LogKind>();
    for (const lines of mergeBlocks(window?.blocks ?? [])) {
      if (errors.has(lines.kind)) continue;
      try {
        await store.apply(lines);
        this.#reportApplied(lines);
        applied.add(lines.kind);
      } catch (error) {
        errors.set(lines.kind, error);
      }
    }
    window?.confirm(errors);
    for (const [kind, error] of errors) this.#trackFailure(kind, error);
    for (const kind of applied) if (!errors.has(kind)) this.#trackSuccess(kind);
    return { kinds: window?.kinds ?? kinds, errors };
  }

  /** Reports each record once, although a retry passes the whole batch to the store again. */
  #reportApplied({ kind, firstSequence, count }: SpooledLines): void {
    const end = firstSequence + count;
    const newCount = end - Math.max(firstSequence, this.#reportedUpTo.get(kind) ?? 0);
    if (newCount <= 0) return;
    this.#reportedUpTo.set(kind, end);
    this.#dependencies.observe({ type: 'records_applied', kind, count: newCount });
  }

  #trackFailure(kind: LogKind, error: unknown): void {
    if (this.#closed) return;
    const { timer, observe } = this.#dependencies;
    const earlier = this.#failing.get(kind);
    const failures = (earlier?.failures ?? 0) + 1;
    const retryAtMs = timer.now() + Math.min(RETRY_DELAY_MS * 2 ** (failures - 1), MAX_RETRY_DELAY_MS);
    // One more kind fails, so the whole store may be at fault.
    if (earlier === undefined) for (const each of this.#failing.values()) each.othersSucceed = false;
    this.#failing.set(kind, { failures, retryAtMs, othersSucceed: earlier?.othersSucceed ?? false });
    observe({ type: 'apply_failed', kind, error });
  }

  #trackSuccess(kind: LogKind): void {
    const recovered = this.#failing.get(kind);
    this.#failing.delete(kind);
    for (const each of this.#failing.values()) each.othersSucceed = true;
    if (recovered === undefined) return;
    this.#dependencies.observe({ type: 'apply_recovered', kind, failures: recovered.failures });
    // The cause of the other failures may be gone, too.
    for (const [each, failing] of this.#failing) this.#failing.set(each, { ...failing, retryAtMs: 0 });
  }

  /**
   * Flushes what is due and deletes segments that are no longer needed. If that fails, pauses for RETRY_DELAY_MS. The next round
   * retries the deletion. A failed flush is retried after MAX_RETRY_DELAY_MS, even if no records arrive.
   */
  async #cleanUp(): Promise<void> {
    try {
      await this.#flushIfDue();
      await this.#deleteFlushed();
    } catch (error) {
      if (this.#closed) return;
      const { timer, observe } = this.#dependencies;
      this.#retryCleanUpAtMs = timer.now() + MAX_RETRY_DELAY_MS;
      observe({ type: 'spool_cleanup_failed', error });
      await this.#pause(RETRY_DELAY_MS);
    }
  }

  async #runDrains(): Promise<void> {
    const drains = this.#drains.splice(0);
    if (drains.length === 0) return;
    try {
      await this.#flushSpool();
      await this.#deleteFlushed();
      for (const { resolve } of drains) resolve();
    } catch (error) {
      for (const { reject } of drains) reject(error);
    }
  }

  /** Applies and flushes all records that are in the spool now. */
  async #flushSpool(): Promise<void> {
    const { spool, store } = this.#dependencies;
    const lastSegment = await spool.rotate();
    while (!spool.isAppliedThrough(lastSegment)) {
      const errors = await this.#applyEach(spool.unappliedKinds);
      for (const error of errors.values()) throw error;
      if (this.#closed) throw intakeClosed();
    }
    await store.flush(LOG_KINDS);
  }

  #rejectDrains(): void {
    for (const { reject } of this.#drains.splice(0)) reject(intakeClosed());
  }

  async #flushIfDue(): Promise<void> {
    const { spool, store, timer } = this.#dependencies;
    const flushedUpTo = (kind: LogKind) => store.flushedUpTo(kind);
    if (timer.now() >= this.#retryCleanUpAtMs) {
      this.#retryCleanUpAtMs = Number.POSITIVE_INFINITY;
      await store.flush([]); // no new kinds: retries only what an earlier flush failed to write
    }
    if (timer.now() - this.#lastFlushMs >= FLUSH_INTERVAL_MS) {
      this.#lastFlushMs = timer.now();
      await store.flush(LOG_KINDS);
    } else if (spool.unflushedBytes(flushedUpTo) > MAX_UNFLUSHED_BYTES) {
      const failingKinds = new Set(this.#failing.keys());
      await store.flush(spool.kindsToFlush(flushedUpTo, failingKinds));
    }
  }

  async #deleteFlushed(): Promise<void> {
    const { spool, store } = this.#dependencies;
    await spool.deleteFlushed(kind => store.flushedUpTo(kind));
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

function intakeClosed(): Error {
  return new Error('the intake is closed');
}

function sumOf(kinds: readonly LogKind[], bytesOf: (kind: LogKind) => number): number {
  return kinds.reduce((sum, kind) => sum + bytesOf(kind), 0);
}

/**
 * Applies the records that a stopped server left in the spool, for commands that read the data directory. Opens the spool like a
 * server: a damaged segment is repaired and reported. The caller must hold the lock of the data directory.
 */
export async function replaySpool(dataDirectory: string, store: Store, observe: Observe): Promise<void> {
  const directory = spoolDirectoryIn(dataDirectory);
  if (!existsSync(directory)) {
    const kinds = LOG_KINDS.filter(kind => store.durableUpTo(kind) > 0);
    if (kinds.length > 0) observe({ type: 'spool_incomplete', directory, kinds });
    return;
  }
  const spool = await Spool.open(directory, kind => store.durableUpTo(kind), observe);
  try {
    // An error of the applier is thrown, so it needs no event.
    await new Applier({ spool, store, timer: systemTimer, observe: () => {} }).catchUp();
  } finally {
    await spool.close();
  }
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
