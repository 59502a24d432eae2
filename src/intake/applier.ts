// Carries records from the spool to the store, in order, again and again until they are there. What fails is tried again;
// nothing is left out.

import { LOG_KINDS, type LogKind } from '../domain/log-columns.ts';
import type { Observe } from '../observe/event.ts';
import type { SpooledLines, Store } from '../store/store.ts';
import type { Clock } from '../system/clock.ts';
import type { Timer } from '../system/timer.ts';
import type { Spool } from './spool.ts';
import type { SpoolBlock } from './spool-block.ts';

/** How long records are gathered: many small requests are one insert. Well below the 2 s within which they are seen. */
const PAUSE_MS = 250;
const RETRY_MS = 1_000;
/** Records that no later ones make a full unit are settled all the same, so that neither memory nor spool holds them for ever. */
const SETTLE_MS = 3_600_000;
/** A busy kind's segments stay for the few records of a quiet one in them; past this the quiet one is settled. */
const MAX_SPOOL_BYTES = 512 * 1024 * 1024;

export interface ApplierDependencies {
  readonly spool: Spool;
  readonly store: Store;
  readonly clock: Clock;
  readonly timer: Timer;
  readonly observe: Observe;
}

interface Run {
  readonly kind: LogKind;
  readonly first: number;
  count: number;
  readonly parts: Uint8Array[];
}

export class Applier {
  readonly #dependencies: ApplierDependencies;
  /** For each kind, the number after the last record that was told of as folded. */
  readonly #reportedUpTo = new Map<LogKind, number>();
  #flushedAt: number;
  /** Since it last worked. */
  #failures = 0;
  #closed = false;
  #running: Promise<void> = Promise.resolve();
  #wake = () => {};

  constructor(parts: ApplierDependencies) {
    this.#dependencies = parts;
    this.#flushedAt = parts.timer.now();
    for (const kind of LOG_KINDS) this.#reportedUpTo.set(kind, parts.store.flushedUpTo(kind));
  }

  /** Folds all that is in the spool now. */
  async catchUp(): Promise<void> {
    while (this.#dependencies.spool.unappliedBytes > 0) await this.#applyNext();
  }

  /** Resolves when what is in the spool can be seen, or the store cannot take it now; it goes on by itself. */
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
      await Promise.race([spool.waitForRecords(), this.#pause(SETTLE_MS)]);
      this.#wake();
      if (this.#closed) return;
      try {
        if (spool.unappliedBytes > 0) await this.#applyNext();
        await this.#flush();
        await this.#deleteFlushed();
        this.#reportRecovery();
        if (spool.unappliedBytes < store.applyBatchBytes) await this.#pause(PAUSE_MS);
      } catch (error) {
        if (this.#closed) return;
        this.#reportFailure(error);
        await this.#pause(RETRY_MS);
      }
    }
  }

  async #applyNext(): Promise<void> {
    const { spool, store } = this.#dependencies;
    const { blocks, done } = await spool.read(store.applyBatchBytes);
    if (blocks.length === 0) throw new Error('the spool holds a block that cannot be read any more');
    const failed = new Map<LogKind, unknown>();
    for (const lines of gather(blocks)) {
      if (failed.has(lines.kind)) continue;
      try {
        await store.apply(lines);
        this.#reportApplied(lines);
      } catch (error) {
        failed.set(lines.kind, error); // the table of one kind may be broken, and the others take theirs
      }
    }
    for (const error of failed.values()) throw error;
    done();
  }

  /** Once of each record, though those of a round that failed half-way are given to the store again. */
  #reportApplied({ kind, firstSequence, count }: SpooledLines): void {
    const end = firstSequence + count;
    const news = end - Math.max(firstSequence, this.#reportedUpTo.get(kind) ?? 0);
    if (news <= 0) return;
    this.#reportedUpTo.set(kind, end);
    this.#dependencies.observe({ type: 'records_applied', kind, count: news });
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

  async #flush(): Promise<void> {
    const { spool, store, timer } = this.#dependencies;
    const isDue = timer.now() - this.#flushedAt >= SETTLE_MS;
    if (isDue) this.#flushedAt = timer.now();
    if (isDue) await store.flush(LOG_KINDS);
    else if (spool.bytes > MAX_SPOOL_BYTES)
      await store.flush(spool.kindsInOldest(kind => store.flushedUpTo(kind)));
  }

  #deleteFlushed(): Promise<void> {
    const { spool, store, clock } = this.#dependencies;
    return spool.deleteFlushed(kind => store.flushedUpTo(kind), Number(clock()));
  }

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

/** One piece for each kind and unbroken run of numbers. */
function gather(blocks: readonly SpoolBlock[]): SpooledLines[] {
  const runs: Run[] = [];
  const runOf = new Map<LogKind, Run>();
  for (const { header, lines } of blocks) {
    const { kind, first, count } = header;
    const before = runOf.get(kind);
    const run =
      before !== undefined && before.first + before.count === first
        ? before
        : { kind, first, count: 0, parts: [] };
    if (run !== before) runs.push(run);
    runOf.set(kind, run);
    run.count += count;
    run.parts.push(lines);
  }
  return runs.map(({ kind, first, count, parts }) => ({
    kind,
    firstSequence: first,
    count,
    lines: Buffer.concat(parts),
  }));
}
